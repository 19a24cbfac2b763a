//! Random commits: both backends hold what a sorted map holds.

use std::collections::BTreeMap;

use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
use state::{CheckpointWrites, Epoch, KeyGroupRange, Storage, TableChanges};

use crate::fixture::{STATE, changes, decoded, ids, in_memory, keys, open, rows, schema, state_rows};

const SUBTASKS: usize = 2;

/// What one subtask hands over at a checkpoint.
#[derive(Debug, Clone)]
struct HandOver {
    subtask: usize,
    delete_up_to: Option<i64>,
    /// `None` deletes.
    entries: BTreeMap<i64, Option<u8>>,
}

fn hand_over() -> impl Strategy<Value = HandOver> {
    let bound = prop_oneof![Just(None), (0..400_i64).prop_map(Some)];
    // Many keys at times, so that a bound is deleted as a range and not key by key.
    let entries = prop_oneof![
        prop::collection::btree_map(0..400_i64, any::<Option<u8>>(), 0..10),
        prop::collection::btree_map(0..400_i64, any::<Option<u8>>(), 100..300),
    ];
    (0..SUBTASKS, bound, entries).prop_map(|(subtask, delete_up_to, entries)| HandOver {
        subtask,
        delete_up_to,
        entries,
    })
}

impl HandOver {
    fn range(&self) -> KeyGroupRange {
        KeyGroupRange::of_subtask(self.subtask, SUBTASKS)
    }

    /// Whether the subtask owns a key.
    fn owns(&self, id: i64) -> bool {
        self.range().contains(schema().key_groups(&[ids(&[id])], 1).unwrap()[0])
    }

    fn changes(&self) -> TableChanges {
        let owned = || self.entries.iter().filter(|(id, _)| self.owns(**id));
        let texts: Vec<(i64, String)> =
            owned().filter_map(|(id, text)| Some((*id, (*text)?.to_string()))).collect();
        let texts: Vec<(i64, &str)> = texts.iter().map(|(id, text)| (*id, text.as_str())).collect();
        let deleted: Vec<i64> = owned().filter(|(_, text)| text.is_none()).map(|(id, _)| *id).collect();
        let delete_up_to = self.delete_up_to.map(|bound| ids(&[bound]));
        TableChanges {
            puts: vec![rows(&texts)],
            deletes: vec![vec![ids(&deleted)]],
            delete_up_to,
            ..changes()
        }
    }

    fn apply(&self, model: &mut BTreeMap<i64, String>) {
        if let Some(bound) = self.delete_up_to {
            model.retain(|id, _| *id > bound || !self.owns(*id));
        }
        for (id, text) in self.entries.iter().filter(|(id, _)| self.owns(**id)) {
            match text {
                Some(text) => drop(model.insert(*id, text.to_string())),
                None => drop(model.remove(id)),
            }
        }
    }
}

fn commit(storage: &Storage, epoch: u64, hand_overs: &[HandOver]) {
    let state = hand_overs.iter().map(|one| (STATE, one.range(), one.changes())).collect();
    storage
        .backend
        .commit(CheckpointWrites { epoch: Epoch(epoch), state, ..CheckpointWrites::default() })
        .unwrap();
}

fn check(storage: &Storage, model: &BTreeMap<i64, String>) {
    let expected: Vec<(i64, String)> = model.clone().into_iter().collect();
    assert_eq!(state_rows(storage, STATE), expected);
    let mut up_to: Vec<_> =
        decoded(storage.backend.scan_state(STATE, KeyGroupRange::ALL, Some(keys(&[200]).get(0))));
    up_to.sort();
    assert_eq!(up_to, expected.into_iter().filter(|(id, _)| *id <= 200).collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: 24, ..Default::default() })]

    #[test]
    fn both_backends_hold_what_a_sorted_map_holds(
        commits in prop::collection::vec(prop::collection::vec(hand_over(), 0..4), 1..12),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let storages = [in_memory(), open(folder.path()).unwrap()];
        let mut model = BTreeMap::new();
        for (epoch, hand_overs) in (1..).zip(&commits) {
            hand_overs.iter().for_each(|one| one.apply(&mut model));
            for storage in &storages {
                commit(storage, epoch, hand_overs);
                check(storage, &model);
            }
        }
        drop(storages);
        check(&open(folder.path()).unwrap(), &model);
    }
}
