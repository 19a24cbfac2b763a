//! Sources in batch queries, over a connector that counts.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, new_null_array};
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use dataflow::{
    Chunk, Connector, ConnectorContext, ConnectorRegistry, Decoded, Decoder, OptionError, OptionSpec,
    ReadOutcome, Result, Source, SourceDefinition, Split, SplitReader,
};

use crate::database::{err, ok, open_with};

/// `count = 'n'`: the numbers from 0 in the first column, in two splits; without `count`, no end.
struct Counting;

#[derive(Debug)]
struct CountingSource {
    schema: SchemaRef,
    count: Option<i64>,
}

const ROWS_IN_A_CHUNK: i64 = 100;

impl Connector for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    fn options(&self) -> &'static [OptionSpec] {
        &[OptionSpec { name: "count", aliases: &[], doc: "how many", required: false }]
    }

    fn source(
        &self,
        definition: &SourceDefinition,
        _: &ConnectorContext,
    ) -> Result<Arc<dyn Source>, OptionError> {
        let count = definition.options.get("count").map(|count| count.parse().unwrap());
        Ok(Arc::new(CountingSource { schema: Arc::clone(&definition.schema), count }))
    }
}

impl Source for CountingSource {
    fn is_bounded(&self) -> bool {
        self.count.is_some()
    }

    fn splits(&self) -> Result<Vec<Split>> {
        let split = |name: &str, start, end| Split { name: name.to_owned(), start, end };
        Ok(match self.count {
            Some(count) => vec![split("low", 0, Some(count / 2)), split("high", count / 2, Some(count))],
            None => vec![split("all", 0, None)],
        })
    }

    fn open(&self, split: &Split, position: i64) -> Result<Box<dyn SplitReader>> {
        Ok(Box::new(CountingReader { position, end: split.end }))
    }

    fn decoder(&self, _: &[usize]) -> Result<Arc<dyn Decoder>> {
        Ok(Arc::new(CountingDecoder { schema: Arc::clone(&self.schema) }))
    }
}

struct CountingReader {
    position: i64,
    end: Option<i64>,
}

impl SplitReader for CountingReader {
    fn read(&mut self, _: usize) -> Result<ReadOutcome> {
        let Some(end) = self.end else { return Ok(ReadOutcome::Pending) };
        if self.position >= end {
            return Ok(ReadOutcome::End);
        }
        let start = self.position;
        self.position = end.min(start + ROWS_IN_A_CHUNK);
        Ok(ReadOutcome::Chunk(Chunk { start, end: self.position, bytes: Bytes::new() }))
    }
}

#[derive(Debug)]
struct CountingDecoder {
    schema: SchemaRef,
}

impl Decoder for CountingDecoder {
    fn decode(&self, chunk: &Chunk) -> Result<Decoded> {
        let positions = Int64Array::from_iter_values(chunk.start..chunk.end);
        let mut columns: Vec<ArrayRef> = vec![Arc::new(positions.clone())];
        for field in self.schema.fields().iter().skip(1) {
            columns.push(new_null_array(field.data_type(), positions.len()));
        }
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        Ok(Decoded { rows, positions, errors: Vec::new() })
    }
}

fn registry() -> ConnectorRegistry {
    let mut registry = ConnectorRegistry::default();
    registry.register(Arc::new(Counting));
    registry
}

#[tokio::test]
async fn a_bounded_source_is_read_like_a_table() {
    let mut db = open_with(registry()).await.session("me");
    ok(&mut db, "CREATE SOURCE c (n BIGINT, x TEXT) WITH (connector = 'counting', count = '10000')").await;
    assert_eq!(ok(&mut db, "SELECT count(*), sum(n), count(x) FROM c").await, "10000|49995000|0");
    assert_eq!(ok(&mut db, "SELECT a.n FROM c a JOIN c b ON a.n = b.n + 9999").await, "9999", "read twice");
    ok(&mut db, "CREATE TABLE t (n BIGINT PRIMARY KEY)").await;
    assert_eq!(ok(&mut db, "INSERT INTO t SELECT n FROM c WHERE n < 50").await, "INSERT 50");
}

#[tokio::test]
async fn a_view_over_a_bounded_source_equals_its_query() {
    let mut db = open_with(registry()).await.session("me");
    ok(&mut db, "CREATE SOURCE c (n BIGINT) WITH (connector = 'counting', count = '5000')").await;
    let query = "SELECT n % 7 AS k, count(*) AS many, sum(n) AS total FROM c GROUP BY n % 7";
    ok(&mut db, &format!("CREATE MATERIALIZED VIEW v AS {query}")).await;
    ok(&mut db, "FLUSH").await;
    let batch = ok(&mut db, &format!("SELECT * FROM ({query}) AS q ORDER BY k")).await;
    assert_eq!(ok(&mut db, "SELECT * FROM v ORDER BY k").await, batch);
    assert_eq!(ok(&mut db, "SELECT count(*) FROM \"v$errors\"").await, "0");
}

#[tokio::test]
async fn an_unbounded_source_is_not_read_in_batch() {
    let mut db = open_with(registry()).await.session("me");
    ok(&mut db, "CREATE SOURCE c (n BIGINT) WITH (connector = 'counting')").await;
    assert_eq!(
        err(&mut db, "SELECT * FROM c").await,
        "0A000 SELECT from the unbounded source \"c\" is not supported"
    );
    assert_eq!(err(&mut db, "INSERT INTO c VALUES (1)").await, "42809 cannot insert into source \"c\"");
}
