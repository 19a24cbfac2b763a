//! Walking several sorted sets of keys as one, the newest winning.

use crate::EncodedKeys;

/// Something with ascending keys, each at most once.
pub(crate) trait Sorted {
    /// The keys, ascending.
    fn keys(&self) -> &EncodedKeys;
}

/// A walk over the keys of several sources in ascending order. A key that several have is seen
/// once, as the entry of the newest.
///
/// There are few sources (their number grows with the logarithm of the entries), so the next key
/// is found by looking at each.
pub(crate) struct MergeCursor<S> {
    sources: Vec<Source<S>>,
    /// Which source is next, and at which of its rows.
    current: Option<(usize, usize)>,
}

struct Source<S> {
    sorted: S,
    next: usize,
    end: usize,
}

impl<S: Sorted> Source<S> {
    fn key(&self) -> Option<&[u8]> {
        (self.next < self.end).then(|| self.sorted.keys().get(self.next))
    }
}

impl<S: Sorted> MergeCursor<S> {
    /// Begins at `start` (inclusive) and ends before `end`. Sources are given oldest first.
    pub(crate) fn new(
        sources: impl IntoIterator<Item = S>,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Self {
        let sources = sources.into_iter().map(|sorted| {
            let keys = sorted.keys();
            let next = start.map_or(0, |start| keys.lower_bound(start));
            let end = end.map_or(keys.len(), |end| keys.lower_bound(end));
            Source { sorted, next, end }
        });
        let mut cursor = Self { sources: sources.collect(), current: None };
        cursor.find_current();
        cursor
    }

    fn find_current(&mut self) {
        let mut least: Option<(usize, &[u8])> = None;
        for (idx, source) in self.sources.iter().enumerate().rev() {
            if let Some(key) = source.key()
                && least.is_none_or(|(_, least)| key < least)
            {
                least = Some((idx, key));
            }
        }
        self.current = least.map(|(idx, _)| (idx, self.sources[idx].next));
    }

    /// The key that [`Self::next`] gives next.
    pub(crate) fn peek(&self) -> Option<&[u8]> {
        self.current.map(|(source, row)| self.sources[source].sorted.keys().get(row))
    }
}

/// Source and row of each key.
impl<S: Sorted> Iterator for MergeCursor<S> {
    type Item = (usize, usize);

    fn next(&mut self) -> Option<(usize, usize)> {
        let (winner, row) = self.current?;
        // Older sources may have the same key: their entries are hidden.
        let (older, newer) = self.sources.split_at_mut(winner);
        let key = newer[0].key();
        for source in older {
            source.next += usize::from(source.key() == key);
        }
        self.sources[winner].next += 1;
        self.find_current();
        Some((winner, row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Keys(EncodedKeys);

    impl Sorted for Keys {
        fn keys(&self) -> &EncodedKeys {
            &self.0
        }
    }

    fn keys(texts: &[&str]) -> Keys {
        let mut keys = EncodedKeys::default();
        texts.iter().for_each(|text| keys.push(text.as_bytes()));
        Keys(keys)
    }

    #[test]
    fn the_newest_source_of_a_key_wins() {
        let sources = [keys(&["a", "b", "d"]), keys(&["b", "c"]), keys(&["b", "d", "e"])];
        let walked: Vec<_> = MergeCursor::new(sources, None, None).collect();
        assert_eq!(walked, [(0, 0), (2, 0), (1, 1), (2, 1), (2, 2)]);
    }

    #[test]
    fn the_start_is_inclusive_and_the_end_exclusive() {
        let sources = [keys(&["a", "c"]), keys(&["b", "d"])];
        let walked: Vec<_> = MergeCursor::new(sources, Some(b"b"), Some(b"d")).collect();
        assert_eq!(walked, [(1, 0), (0, 1)]);
    }

    #[test]
    fn empty_sources_have_no_keys() {
        let cursor = MergeCursor::new([keys(&[]), Keys(EncodedKeys::default())], Some(b"a"), None);
        assert_eq!(cursor.peek(), None);
        assert_eq!(cursor.count(), 0);
    }
}
