//! README.md does what it says: its statements run in psql against a real server, its scripts in
//! `highwater run`, and each answer it shows is the answer that comes.

use std::process::Command;

use testkit::crash::binary;

use crate::protocol::Running;
use crate::psql::run_psql;

/// A fenced block: what stands behind the fence, and its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Block {
    language: String,
    text: String,
}

fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in markdown.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                open = Some(Block { language: language.to_owned(), text: String::new() })
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

fn readme() -> Vec<Block> {
    blocks(&std::fs::read_to_string(testkit::repository().join("README.md")).unwrap())
}

#[test]
fn the_tour_answers_what_is_written() {
    let server = Running::start();
    let blocks = readme();
    let mut answers = 0;
    for (at, block) in blocks.iter().enumerate().filter(|(_, block)| block.language == "sql") {
        let (shown, messages) = run_psql(&server, &block.text);
        assert!(!messages.contains("ERROR"), "{messages}\n{}", block.text);
        let expected = blocks.get(at + 1).filter(|next| next.language == "text");
        assert_eq!(shown.trim_end(), expected.map_or("", |next| next.text.trim_end()), "\n{}", block.text);
        answers += usize::from(expected.is_some());
    }
    assert!(answers >= 3, "the tour shows hardly any answers");
}

#[test]
fn scripts_print_what_is_written() {
    let blocks = readme();
    let mut runs = 0;
    for (at, block) in blocks.iter().enumerate().filter(|(_, block)| block.language == "sh") {
        for line in block.text.lines().filter_map(|line| line.strip_prefix("target/release/highwater run ")) {
            let output = Command::new(binary())
                .arg("run")
                .args(line.split_ascii_whitespace())
                .current_dir(testkit::repository())
                .env("HIGHWATER_CONFIG", "/dev/null")
                .env("HIGHWATER_LOG", "error")
                .output()
                .unwrap();
            let errors = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.success(), "{line}\n{errors}");
            let expected =
                blocks.get(at + 1).filter(|next| next.language == "text").expect("it shows what is printed");
            assert_eq!(String::from_utf8(output.stdout).unwrap(), expected.text, "{line}");
            runs += 1;
        }
    }
    assert!(runs > 0, "nothing shows how to run a script");
}

#[test]
fn files_that_are_linked_exist() {
    let text = std::fs::read_to_string(testkit::repository().join("README.md")).unwrap();
    let links: Vec<&str> = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|link| !link.contains("://"))
        .collect();
    assert!(!links.is_empty());
    for link in links {
        assert!(testkit::repository().join(link).exists(), "{link}");
    }
}
