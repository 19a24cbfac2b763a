//! Facts about the source itself: which crate may use which, and what lies at the top level.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Which workspace crates a crate may depend on. A new arrow in the architecture is a new word
/// here, and is reviewed as such. `testkit` may use anything.
const MAY_USE: &[(&str, &[&str])] = &[
    ("sql", &[]),
    ("state", &[]),
    ("dataflow", &["state"]),
    ("catalog", &["sql", "state"]),
    ("operators", &["dataflow", "state"]),
    ("connectors", &["dataflow"]),
    ("planner", &["catalog", "dataflow", "operators", "sql"]),
    ("runtime", &["dataflow", "state"]),
    ("engine", &["catalog", "dataflow", "planner", "runtime", "sql", "state"]),
    ("server", &["connectors", "dataflow", "engine", "sql"]),
];

/// What the top level of the repository may hold besides dotfiles.
const TOP_LEVEL: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "LICENSE",
    "README.md",
    "crates",
    "docs",
    "examples",
    "sql-tests",
    "data",
    "target",
];

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The keys of one section of a manifest.
fn section<'a>(manifest: &'a str, header: &str) -> Vec<&'a str> {
    manifest
        .lines()
        .skip_while(|line| line.trim() != header)
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
        .collect()
}

fn forbidden_arrows(manifests: &BTreeMap<String, String>) -> Vec<String> {
    let members: BTreeSet<&str> = MAY_USE.iter().map(|(name, _)| *name).chain(["testkit"]).collect();
    let mut found = Vec::new();
    for (name, manifest) in manifests {
        let Some((_, may_use)) = MAY_USE.iter().find(|(member, _)| member == name) else {
            if name != "testkit" {
                found.push(format!("crates/{name} is not in the table of the architecture"));
            }
            continue;
        };
        for dependency in section(manifest, "[dependencies]") {
            if members.contains(dependency) && !may_use.contains(&dependency) {
                found.push(format!(
                    "crates/{name} may not depend on crates/{dependency}; see docs/architecture.md"
                ));
            }
        }
    }
    found
}

fn manifests() -> BTreeMap<String, String> {
    std::fs::read_dir(testkit::repository().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            (entry.file_name().to_string_lossy().into_owned(), read(&entry.path().join("Cargo.toml")))
        })
        .collect()
}

#[test]
fn crates_depend_downwards_only() {
    assert_eq!(forbidden_arrows(&manifests()), Vec::<String>::new());
}

#[test]
fn a_new_arrow_is_noticed() {
    let mut manifests = manifests();
    let runtime = manifests.get_mut("runtime").unwrap();
    *runtime = runtime.replace("[dependencies]", "[dependencies]\noperators.workspace = true");
    assert_eq!(
        forbidden_arrows(&manifests),
        ["crates/runtime may not depend on crates/operators; see docs/architecture.md"],
    );
}

#[test]
fn the_top_level_holds_only_what_was_agreed() {
    let stray: Vec<String> = std::fs::read_dir(testkit::repository())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.') && !TOP_LEVEL.contains(&name.as_str()))
        .collect();
    assert_eq!(stray, Vec::<String>::new());
}

#[test]
fn every_source_file_says_what_it_is() {
    let mut silent = Vec::new();
    let mut folders = vec![testkit::repository().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && !path.ends_with("tests.rs")
            {
                let text = read(&path);
                if !text.starts_with("//!") || text.starts_with("//! PLACEHOLDER") {
                    silent.push(path.display().to_string());
                }
            }
        }
    }
    assert_eq!(silent, Vec::<String>::new());
}
