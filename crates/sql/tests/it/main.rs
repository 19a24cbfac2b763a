//! Tests of the crate through its public interface.

#![expect(clippy::unwrap_used, reason = "a test may fail")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a test names the one statement it wants")]

mod aliases;
mod engine;
mod errors;
mod functions;
mod fuzz;
mod planner_errors;
mod statements;

/// A statement in short, or its error with the place.
fn outcome(text: &str) -> String {
    match sql::parse(text) {
        Ok(parsed) => parsed.iter().map(|one| format!("{:?}", one.statement)).collect::<Vec<_>>().join("\n"),
        Err(error) => {
            let position = error.position.map_or_else(|| "-".to_owned(), |position| position.to_string());
            format!("{} {position} {error}", error.sqlstate())
        }
    }
}
