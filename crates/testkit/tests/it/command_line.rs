//! The command line: flags, environment, configuration file, and what is said about wrong ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use testkit::crash::binary;

/// Runs the binary in a folder with an environment of its own.
fn highwater(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let inherited: BTreeMap<String, String> =
        std::env::vars().filter(|(name, _)| !name.starts_with("HIGHWATER_")).collect();
    Command::new(binary())
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .envs(inherited)
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A folder with a script that answers 3.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("job.sql"), "SELECT 1 + 2 AS three;").unwrap();
    folder
}

#[test]
fn wrong_values_are_named() {
    let folder = folder();
    for (arguments, environment, file, named) in [
        (&["--memory", "much"][..], &[][..], "", "memory: \"much\" is not a size"),
        (&["--memory", "1MiB"], &[], "", "memory must be at least 64MiB"),
        (&["--parallelism", "0"], &[], "", "parallelism must be from 1 to 128, not 0"),
        (&["--parallelism", "many"], &[], "", "--parallelism"),
        (&["--epoch-min", "10"], &[], "", "epoch-min: \"10\" is not a time"),
        (&["--epoch-max", "1ms"], &[], "", "epoch-max is shorter than epoch-min"),
        (&["--checkpoint-interval", "soon"], &[], "", "checkpoint-interval: \"soon\" is not a time"),
        (&["--checkpoint-interval", "0s"], &[], "", "checkpoint-interval must be"),
        (&["--state-backend", "paper"], &[], "", "[possible values: rocksdb, memory]"),
        (&["--allow-path", "nowhere"], &[], "", "allow-path: nowhere is not a folder"),
        (&["--colour", "red"], &[], "", "unexpected argument '--colour'"),
        (&["--epoch-mn", "1ms"], &[], "", "'--epoch-min'"),
        (&[], &[("HIGHWATER_MEMORY", "much")], "", "memory: \"much\""),
        (&[], &[("HIGHWATER_PARALLELISM", "many")], "", "PARALLELISM"),
        (&[], &[("HIGHWATER_COLOUR", "red")], "", "colour"),
        (&[], &[("HIGHWATER_STATE_BACKEND", "paper")], "", "paper"),
        (&[], &[("HIGHWATER_CONFIG", "nowhere.toml")], "", "HIGHWATER_CONFIG: there is no file nowhere.toml"),
        (&[], &[], "colour = 'red'", "colour"),
        (&[], &[], "parallelism = 'many'", "parallelism"),
        (&[], &[], "parallelism = ", "highwater.toml"),
    ] {
        fs::write(folder.path().join("highwater.toml"), file).unwrap();
        for command in ["run", "serve"] {
            let mut all = vec![command];
            if command == "run" {
                all.push("job.sql");
            }
            all.extend(arguments);
            let output = highwater(folder.path(), &all, environment);
            let errors = text(&output.stderr);
            assert!(!output.status.success(), "{all:?} {environment:?} {file:?} is accepted");
            assert!(errors.contains(named), "{all:?} {environment:?} {file:?}\n{errors}");
            assert!(!errors.contains("panicked"), "{errors}");
        }
    }
}

#[test]
fn flags_are_stronger_than_the_environment_and_it_than_the_file() {
    let folder = folder();
    let run = |arguments: &[&str], environment: &[(&str, &str)]| {
        let all: Vec<&str> = ["run", "job.sql"].iter().chain(arguments).copied().collect();
        let output = highwater(folder.path(), &all, environment);
        if output.status.success() { text(&output.stdout) } else { text(&output.stderr) }
    };
    fs::write(folder.path().join("highwater.toml"), "parallelism = 0").unwrap();
    assert!(run(&[], &[]).contains("parallelism"));
    assert_eq!(run(&[], &[("HIGHWATER_PARALLELISM", "2")]), "three\n3\n");
    assert!(run(&[], &[("HIGHWATER_PARALLELISM", "0")]).contains("parallelism"));
    assert_eq!(run(&["--parallelism", "1"], &[("HIGHWATER_PARALLELISM", "0")]), "three\n3\n");
}

#[test]
fn every_setting_can_stand_everywhere() {
    let folder = folder();
    fs::create_dir(folder.path().join("in")).unwrap();
    let settings = [
        ("listen", "127.0.0.1:0"),
        ("allow-path", "in"),
        ("memory", "134217728"),
        ("parallelism", "2"),
        ("epoch-min", "5ms"),
        ("epoch-max", "100ms"),
        ("checkpoint-interval", "500ms"),
        ("state-backend", "memory"),
    ];
    let flags: Vec<String> =
        settings.iter().flat_map(|(name, value)| [format!("--{name}"), (*value).to_owned()]).collect();
    let mut all = vec!["run", "job.sql"];
    all.extend(flags.iter().map(String::as_str));
    let output = highwater(folder.path(), &all, &[]);
    assert_eq!(text(&output.stdout), "three\n3\n", "{}", text(&output.stderr));

    let names: Vec<String> = settings
        .iter()
        .map(|(name, _)| format!("HIGHWATER_{}", name.to_uppercase().replace('-', "_")))
        .collect();
    let mut environment: Vec<(&str, &str)> =
        names.iter().zip(&settings).map(|(name, (_, value))| (name.as_str(), *value)).collect();
    environment.push(("HIGHWATER_LOG", "warn"));
    let output = highwater(folder.path(), &["run", "job.sql"], &environment);
    assert_eq!(text(&output.stdout), "three\n3\n", "{}", text(&output.stderr));

    let file =
        "listen = '127.0.0.1:0'\nallow_path = ['in']\nmemory = 134217728\nparallelism = 2\nepoch_min = '5ms'
epoch_max = '100ms'\ncheckpoint_interval = '500ms'\nstate_backend = 'memory'\n";
    fs::write(folder.path().join("other.toml"), file).unwrap();
    let output = highwater(folder.path(), &["run", "job.sql"], &[("HIGHWATER_CONFIG", "other.toml")]);
    assert_eq!(text(&output.stdout), "three\n3\n", "{}", text(&output.stderr));
}

#[test]
fn a_server_listens_on_loopback_only_and_on_a_free_port() {
    let folder = folder();
    let output = highwater(folder.path(), &["serve", "--listen", "0.0.0.0:0"], &[]);
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("not a loopback address"), "{}", text(&output.stderr));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = highwater(folder.path(), &["serve", "--listen", &address], &[]);
    assert!(
        text(&output.stderr).contains(&format!("cannot listen on {address}")),
        "{}",
        text(&output.stderr)
    );
    let output = highwater(folder.path(), &["serve", "--listen", "nonsense"], &[]);
    assert!(text(&output.stderr).contains("cannot listen on nonsense"), "{}", text(&output.stderr));
}

#[test]
fn a_script_that_fails_says_where_and_fails() {
    let folder = folder();
    let run = |script: &str| {
        fs::write(folder.path().join("bad.sql"), script).unwrap();
        let output = highwater(folder.path(), &["run", "bad.sql"], &[("HIGHWATER_LOG", "error")]);
        assert_eq!(output.status.code(), Some(1));
        (text(&output.stdout), text(&output.stderr))
    };
    assert_eq!(
        run("SELECT 1 AS one;\n\nSELECT nix;\nSELECT 2;"),
        (
            "one\n1\n".to_owned(),
            "highwater: bad.sql:3: ERROR 42703: column \"nix\" does not exist\n".to_owned()
        ),
    );
    assert_eq!(
        run("SELECT 1;\nSELECT (;").1,
        "highwater: bad.sql:2: ERROR 42601: syntax error at end of input\n",
    );
    let output = highwater(folder.path(), &["run", "missing.sql"], &[]);
    assert!(text(&output.stderr).contains("cannot read missing.sql"), "{}", text(&output.stderr));
}

#[test]
fn a_script_ends_when_its_bounded_sources_end() {
    let folder = folder();
    fs::write(folder.path().join("clicks.json"), "{\"user_id\": 1}\n{\"user_id\": 2}\n{\"user_id\": 1}\n")
        .unwrap();
    let script = "CREATE SOURCE clicks (user_id BIGINT) WITH (connector = 'file', path = 'clicks.json') FORMAT PLAIN ENCODE JSON;
CREATE MATERIALIZED VIEW per_user AS SELECT user_id, count(*) AS clicks FROM clicks GROUP BY user_id;
FLUSH;
SELECT * FROM per_user ORDER BY user_id;
";
    fs::write(folder.path().join("clicks.sql"), script).unwrap();
    let output = highwater(folder.path(), &["run", "clicks.sql"], &[]);
    assert_eq!(text(&output.stdout), "user_id|clicks\n1|2\n2|1\n", "{}", text(&output.stderr));
    assert!(!folder.path().join("data").exists(), "without --data nothing is kept");
    let output = highwater(folder.path(), &["run", "clicks.sql", "--data", "kept"], &[]);
    assert!(output.status.success());
    fs::write(folder.path().join("again.sql"), "SELECT * FROM per_user ORDER BY user_id").unwrap();
    let output = highwater(folder.path(), &["run", "again.sql", "--data", "kept"], &[]);
    assert_eq!(text(&output.stdout), "user_id|clicks\n1|2\n2|1\n", "{}", text(&output.stderr));
}
