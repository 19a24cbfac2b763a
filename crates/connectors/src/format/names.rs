//! Finds the column that a key or a header field names.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::format::rows::RowPlan;

/// What to do with the value under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Skip,
    Slot {
        slot: usize,
        /// Whether the name is the column's, letter by letter.
        is_exact: bool,
    },
}

/// The columns of a schema by name, filled or not.
#[derive(Debug)]
pub(crate) struct Names {
    exact: HashMap<String, Option<usize>, FixedState>,
    /// By lower-case name; `None` if several columns share it.
    folded: HashMap<String, Option<usize>, FixedState>,
}

impl Names {
    pub(crate) fn new(plan: &RowPlan) -> Self {
        let mut names = Self { exact: HashMap::default(), folded: HashMap::default() };
        for (idx, field) in plan.schema.fields().iter().enumerate() {
            let slot = plan.slot(idx);
            names.exact.insert(field.name().clone(), slot);
            names.folded.entry(field.name().to_lowercase()).and_modify(|slot| *slot = None).or_insert(slot);
        }
        names
    }

    /// The column with that name, or else the only one that has it in another case.
    pub(crate) fn target(&self, name: &str) -> Target {
        if let Some(slot) = self.exact.get(name) {
            return slot.map_or(Target::Skip, |slot| Target::Slot { slot, is_exact: true });
        }
        let slot = self.folded.get(&name.to_lowercase()).copied().flatten();
        slot.map_or(Target::Skip, |slot| Target::Slot { slot, is_exact: false })
    }
}
