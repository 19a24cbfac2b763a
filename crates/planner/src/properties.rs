//! What is known about the rows of an edge, beside their columns.
//!
//! Lowering derives these from the bottom up, one function per operator, and decides by them: the
//! key a view is stored under, whether a window can be closed, where an exchange is needed.

use arrow::datatypes::DataType;
use dataflow::ChangelogKind;

/// Properties of the rows that flow along one edge. Columns are positions in the logical schema.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    /// Whether rows are also taken back.
    pub(crate) kind: ChangelogKind,
    /// Columns no two rows agree in, if there are such.
    pub(crate) key: Option<Vec<usize>>,
    /// Columns whose value is at or behind the watermark only in rows that are late.
    pub(crate) event_time: Vec<usize>,
    /// Columns that name a window which the watermark closes.
    pub(crate) windows: Vec<WindowColumn>,
    /// Whether rows know the split, position and watermark they came with.
    pub(crate) has_origin: bool,
    /// The columns whose hash decides the subtask a row is on; `None`: nothing is known.
    pub(crate) distribution: Option<Vec<usize>>,
    /// Why there is no watermark, in the user's words; `None`: there is one.
    pub(crate) no_watermark: Option<String>,
}

/// A column that is a fixed time before the end of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WindowColumn {
    pub(crate) column: usize,
    /// Microseconds from its value to the end of the window.
    pub(crate) to_end: i64,
}

impl Stream {
    /// Rows of which nothing is known but the kind of changes.
    pub(crate) fn unknown(kind: ChangelogKind, no_watermark: String) -> Self {
        Self {
            kind,
            key: None,
            event_time: Vec::new(),
            windows: Vec::new(),
            has_origin: false,
            distribution: None,
            no_watermark: Some(no_watermark),
        }
    }

    /// The same rows with other columns: output column `i` is input column `sources[i]`, or
    /// computed.
    pub(crate) fn project(&self, sources: &[Option<usize>]) -> Self {
        let first = |column: usize| sources.iter().position(|source| *source == Some(column));
        let all = |column: usize| {
            sources.iter().enumerate().filter(move |(_, source)| **source == Some(column)).map(|(at, _)| at)
        };
        let every = |columns: &Option<Vec<usize>>| {
            columns.as_ref().and_then(|columns| columns.iter().map(|column| first(*column)).collect())
        };
        let window = |window: &WindowColumn| {
            let to_end = window.to_end;
            all(window.column).map(move |column| WindowColumn { column, to_end }).collect::<Vec<_>>()
        };
        Self {
            kind: self.kind,
            key: every(&self.key),
            event_time: self.event_time.iter().flat_map(|column| all(*column)).collect(),
            windows: self.windows.iter().flat_map(window).collect(),
            has_origin: self.has_origin,
            distribution: every(&self.distribution),
            no_watermark: self.no_watermark.clone(),
        }
    }

    /// UNION ALL of several inputs.
    pub(crate) fn union(inputs: &[Self]) -> Self {
        let is_append = inputs.iter().all(|input| input.kind == ChangelogKind::Append);
        let kind = if is_append { ChangelogKind::Append } else { ChangelogKind::Retract };
        let no_watermark = inputs.iter().find_map(|input| input.no_watermark.clone());
        let everywhere = |column: &usize| inputs.iter().all(|input| input.event_time.contains(column));
        let same_window = |window: &WindowColumn| inputs.iter().all(|input| input.windows.contains(window));
        let (event_time, windows) = match (&no_watermark, inputs.first()) {
            (None, Some(first)) => (
                first.event_time.iter().copied().filter(everywhere).collect(),
                first.windows.iter().copied().filter(same_window).collect(),
            ),
            (Some(_), _) | (_, None) => (Vec::new(), Vec::new()),
        };
        Self {
            kind,
            key: None,
            event_time,
            windows,
            has_origin: inputs.iter().all(|input| input.has_origin),
            distribution: None,
            no_watermark,
        }
    }

    /// Columns `start`, `start + 1`, `start + 2` are the bounds of a window over the column
    /// `time`.
    pub(crate) fn with_window(mut self, time: usize, start: usize, size: i64) -> Self {
        if self.no_watermark.is_none() && !self.event_time.contains(&time) {
            self.no_watermark = Some("its window is not over the column that has the watermark".to_owned());
        }
        if self.no_watermark.is_none() {
            self.windows = [(0, size), (1, 0), (2, 1)]
                .map(|(bound, to_end)| WindowColumn { column: start + bound, to_end })
                .into();
            self.event_time.extend([start + 1, start + 2]);
        } else {
            self.windows.clear();
            self.event_time.clear();
        }
        self
    }

    /// Whether all rows that agree in `columns` are on one subtask.
    pub(crate) fn is_together(&self, columns: &[usize]) -> bool {
        self.distribution.as_ref().is_some_and(|hashed| hashed.iter().all(|column| columns.contains(column)))
    }
}

/// Whether a column of this type can carry a watermark or be windowed.
pub(crate) fn is_event_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, _))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Stream {
        Stream {
            kind: ChangelogKind::Append,
            key: Some(vec![0, 1]),
            event_time: vec![2],
            windows: vec![],
            has_origin: true,
            distribution: Some(vec![1]),
            no_watermark: None,
        }
    }

    #[test]
    fn a_projection_keeps_what_its_columns_allow() {
        let all = source().project(&[Some(2), None, Some(1), Some(0), Some(2)]);
        assert_eq!(all.key, Some(vec![3, 2]));
        assert_eq!(all.event_time, [0, 4]);
        assert_eq!(all.distribution, Some(vec![2]));
        let part = source().project(&[Some(1), None]);
        assert_eq!(part.key, None, "column 0 is gone");
        assert_eq!(part.event_time, [0; 0]);
        assert_eq!(part.distribution, Some(vec![0]));
    }

    #[test]
    fn a_union_has_a_watermark_only_if_all_inputs_have_it_in_the_same_column() {
        let both = Stream::union(&[source(), source()]);
        assert_eq!((both.event_time, both.no_watermark), (vec![2], None));
        let other = source().project(&[Some(2), Some(0), Some(1)]);
        assert_eq!(Stream::union(&[source(), other]).event_time, [0; 0]);
        let without = Stream::unknown(ChangelogKind::Retract, "x".to_owned());
        let mixed = Stream::union(&[source(), without]);
        assert_eq!((mixed.kind, mixed.has_origin), (ChangelogKind::Retract, false));
        assert_eq!(mixed.no_watermark.as_deref(), Some("x"));
    }

    #[test]
    fn windows_close_only_over_the_column_with_the_watermark() {
        let window = source().with_window(2, 3, 10);
        assert_eq!(window.windows[0], WindowColumn { column: 3, to_end: 10 });
        assert_eq!(window.event_time, [2, 4, 5]);
        let other = source().with_window(1, 3, 10);
        assert!(other.windows.is_empty() && other.no_watermark.is_some());
    }
}
