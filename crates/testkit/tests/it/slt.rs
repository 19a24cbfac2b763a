//! Every file under `sql-tests/`, in every way that must not make a difference.

use std::path::{Path, PathBuf};

use testkit::database::Backend;
use testkit::shape::Shape;
use testkit::slt::{Way, run_file};

fn files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![testkit::repository().join("sql-tests").join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "slt") {
                found.push(path);
            }
        }
    }
    found.sort();
    let only = std::env::var("SLT").unwrap_or_default();
    found.retain(|path| path.to_string_lossy().contains(&only));
    found
}

/// Runs all files of a folder one way and reports every failure at once.
fn run_folder(folder: &str, way: Way) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let failures: Vec<String> = files(folder)
        .iter()
        .filter_map(|path: &PathBuf| {
            let name = Path::display(path);
            let outcome = runtime.block_on(run_file(path, way));
            outcome.err().map(|error| format!("{name}\n{error}"))
        })
        .collect();
    assert!(failures.is_empty(), "{} files failed:\n\n{}", failures.len(), failures.join("\n\n"));
}

const STRAIGHT: Way = Way {
    backend: Backend::Memory,
    parallelism: 2,
    restart: false,
    over_the_wire: false,
    shape: Shape::AsWritten,
};

#[test]
fn batch_in_process() {
    run_folder("batch", STRAIGHT);
}

#[test]
fn batch_over_the_wire() {
    run_folder("batch", Way { over_the_wire: true, ..STRAIGHT });
}

#[test]
fn errors_in_process() {
    run_folder("errors", STRAIGHT);
}

#[test]
fn errors_over_the_wire() {
    run_folder("errors", Way { over_the_wire: true, ..STRAIGHT });
}

const IN_MEMORY_KILLED: Way = Way { restart: true, ..STRAIGHT };
const ON_DISK_OVER_THE_WIRE: Way = Way { backend: Backend::RocksDb, over_the_wire: true, ..STRAIGHT };
const ON_DISK_KILLED: Way = Way { backend: Backend::RocksDb, restart: true, ..STRAIGHT };

#[test]
fn streaming_in_memory() {
    run_folder("streaming", STRAIGHT);
}

#[test]
fn streaming_in_memory_killed_and_restarted() {
    run_folder("streaming", IN_MEMORY_KILLED);
}

#[test]
fn streaming_on_disk_over_the_wire() {
    run_folder("streaming", ON_DISK_OVER_THE_WIRE);
}

#[test]
fn streaming_on_disk_killed_and_restarted() {
    run_folder("streaming", ON_DISK_KILLED);
}

/// Runs the cases in every shape.
fn run_cases(way: Way) {
    for shape in [Shape::AsWritten, Shape::Together, Shape::ViewsLast] {
        run_folder("cases", Way { shape, ..way });
    }
}

#[test]
fn cases_in_memory() {
    run_cases(STRAIGHT);
}

#[test]
fn cases_in_memory_killed_and_restarted() {
    run_cases(IN_MEMORY_KILLED);
}

#[test]
fn cases_on_disk_over_the_wire() {
    run_cases(ON_DISK_OVER_THE_WIRE);
}

#[test]
fn cases_on_disk_killed_and_restarted() {
    run_cases(ON_DISK_KILLED);
}
