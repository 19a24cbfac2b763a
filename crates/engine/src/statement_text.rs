//! How much memory reading a statement may take.
//!
//! A syntax tree is much larger than its text: a list of short literals takes 200 times as much. What
//! does not fit is refused before anything of it is read.

use datafusion::execution::memory_pool::MemoryLimit;
use sql::{SqlError, SqlErrorKind};

use crate::engine::Shared;

/// Tokens and tree of one item of a list, measured on lists of short integers.
const ITEM_BYTES: usize = 600;
/// What even a small server reads: 110,000 items.
const ALWAYS: usize = 64 << 20;

/// Refuses a text that would need more memory than all queries together have.
pub(crate) fn check(shared: &Shared, text: &str) -> Result<(), SqlError> {
    let MemoryLimit::Finite(limit) = shared.query_env.memory_pool.memory_limit() else { return Ok(()) };
    let limit = limit.max(ALWAYS);
    let items = text.bytes().filter(|byte| *byte == b',').count();
    let needed = items.saturating_mul(ITEM_BYTES).saturating_add(text.len());
    if needed <= limit {
        return Ok(());
    }
    let detail = format!(
        "Reading a statement of {} bytes with {items} commas takes about {needed} bytes; {limit} may be used.",
        text.len(),
    );
    let hint = "Send the rows in several statements, or start the server with more --memory.";
    Err(SqlErrorKind::OutOfMemory.detail(detail).hint(hint))
}
