//! A catalog built by planning, with a connector that reads nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use catalog::{Catalog, Relation};
use dataflow::{
    Connector, ConnectorContext, ConnectorRegistry, Decoder, OptionError, OptionSpec, Sink, SinkDefinition,
    SinkWriter, Source, SourceDefinition, Split, SplitReader,
};
use datafusion::catalog::TableProvider;
use datafusion::datasource::MemTable;
use planner::{
    BatchTables, PlanContext, PlannedRelation, explain_text, plan_query, plan_relation, relation_schema,
};
use sql::{SqlError, Statement};

pub(crate) const BID: &str = "CREATE SOURCE bid (auction BIGINT, bidder BIGINT, price BIGINT, channel TEXT,
    date_time TIMESTAMP, extra TEXT, WATERMARK FOR date_time AS date_time - INTERVAL '4 seconds')
    WITH (connector = 'fake', bounded = 'true')";

/// Plans statements and keeps what they create.
pub(crate) struct Database {
    pub(crate) catalog: Catalog,
}

impl Database {
    pub(crate) fn new() -> Self {
        Self { catalog: Catalog::new() }
    }

    /// A database in which these statements were executed.
    pub(crate) fn with(statements: &[&str]) -> Self {
        let mut database = Self::new();
        for statement in statements {
            database.create(statement);
        }
        database
    }

    pub(crate) fn context(&self) -> PlanContext {
        let mut connectors = ConnectorRegistry::default();
        connectors.register(Arc::new(Fake));
        PlanContext {
            catalog: Arc::new(self.catalog.clone()),
            connectors,
            connector_context: ConnectorContext::default(),
            settings: BTreeMap::new(),
        }
    }

    pub(crate) fn plan(&self, text: &str) -> Result<PlannedRelation, SqlError> {
        let statement = sql::parse(text)?.pop().unwrap().statement;
        let mut catalog = self.catalog.clone();
        let id = catalog.allocate_relation();
        let first_table = catalog.allocate_tables(1);
        plan_relation(&statement, id, first_table, &self.context())
    }

    pub(crate) fn create(&mut self, text: &str) {
        let planned = self.plan(text).unwrap();
        let name = match sql::parse(text).unwrap().pop().unwrap().statement {
            Statement::CreateSource(source) => source.name,
            Statement::CreateTable(table) => table.name,
            Statement::CreateView(view) => view.name,
            Statement::CreateMaterializedView(view) => view.name,
            Statement::CreateSink(sink) => sink.name,
            other => panic!("{other:?} creates nothing"),
        };
        let relation = Relation {
            id: self.catalog.allocate_relation(),
            schema: Catalog::PUBLIC.to_owned(),
            name: name.name,
            kind: planned.kind,
            columns: planned.columns,
            definition: planned.definition,
            settings: BTreeMap::new(),
            dependencies: planned.dependencies,
            first_table: self.catalog.allocate_tables(planned.table_count),
            table_count: planned.table_count,
            graph_hash: planned.graph_hash,
            owner: "postgres".to_owned(),
        };
        self.catalog.create(vec![relation]).unwrap();
    }

    /// What EXPLAIN prints, then the columns and the notices.
    pub(crate) fn explain(&self, text: &str) -> String {
        match self.plan(text) {
            Ok(planned) => {
                let columns: Vec<String> = planned
                    .columns
                    .iter()
                    .map(|column| format!("{} {}", column.name, sql::type_name(&column.data_type)))
                    .collect();
                let mut text = format!("{}columns {}\n", explain_text(&planned), columns.join(", "));
                for notice in &planned.notices {
                    text.push_str(&format!("notice {notice}\n"));
                }
                text
            }
            Err(error) => error_text(&error, text),
        }
    }

    /// The error a statement gives.
    pub(crate) fn error(&self, text: &str) -> String {
        match self.plan(text) {
            Ok(planned) => panic!("not refused:\n{}", explain_text(&planned)),
            Err(error) => error_text(&error, text),
        }
    }

    /// The result of a batch query over tables with these rows, as `name = value` lines.
    pub(crate) fn select(&self, text: &str, rows: BTreeMap<&'static str, RecordBatch>) -> String {
        let Statement::Query(query) = sql::parse(text).unwrap().pop().unwrap().statement else {
            panic!("no query");
        };
        let tables: Arc<dyn BatchTables> = Arc::new(Rows(rows));
        let plan = match plan_query(&query, &self.context(), &tables) {
            Ok(plan) => plan,
            Err(error) => return error_text(&error, text),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let result = runtime.block_on(async {
            let physical = plan.state.create_physical_plan(&plan.logical).await?;
            datafusion::physical_plan::collect(physical, plan.state.task_ctx()).await
        });
        let batches = match result {
            Ok(batches) => batches,
            Err(error) => return error_text(&sql::from_datafusion(error), text),
        };
        let fields = plan.logical.schema().fields();
        let header: Vec<String> = plan
            .names
            .iter()
            .zip(fields)
            .map(|(name, field)| format!("{name} {}", sql::type_name(field.data_type())))
            .collect();
        let rows = arrow::util::pretty::pretty_format_batches(&batches).unwrap().to_string();
        let rows: Vec<&str> = rows.lines().filter(|line| line.starts_with('|')).skip(1).collect();
        format!("{}\n{}\n", header.join(", "), rows.join("\n"))
    }
}

/// SQLSTATE, message, the text the position points at, detail and hint.
pub(crate) fn error_text(error: &SqlError, text: &str) -> String {
    let mut lines = format!("{} {error}\n", error.sqlstate());
    if let Some(position) = error.position {
        let at: String = text.chars().skip(position as usize - 1).take(12).collect();
        lines.push_str(&format!("at {at}\n"));
    }
    if let Some(detail) = &error.detail {
        lines.push_str(&format!("detail {detail}\n"));
    }
    if let Some(hint) = &error.hint {
        lines.push_str(&format!("hint {hint}\n"));
    }
    lines
}

struct Rows(BTreeMap<&'static str, RecordBatch>);

impl BatchTables for Rows {
    fn table(&self, relation: &Relation) -> Result<Arc<dyn TableProvider>, SqlError> {
        let schema = relation_schema(&relation.columns);
        let rows = self.0.get(relation.name.as_str()).map(|rows| rows.columns().to_vec());
        let batches = rows.map(|columns| RecordBatch::try_new(Arc::clone(&schema), columns).unwrap());
        let table = MemTable::try_new(schema, vec![batches.into_iter().collect()]).unwrap();
        Ok(Arc::new(table))
    }

    fn system_table(&self, _schema: Option<&str>, _name: &str) -> Option<Arc<dyn TableProvider>> {
        None
    }
}

#[derive(Debug)]
struct Fake;

impl Connector for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn options(&self) -> &'static [OptionSpec] {
        &[]
    }

    fn source(
        &self,
        definition: &SourceDefinition,
        _ctx: &ConnectorContext,
    ) -> Result<Arc<dyn Source>, OptionError> {
        for (name, value) in &definition.options {
            match (name.as_str(), value.as_str()) {
                ("bounded", "true") => return Ok(Arc::new(FakeSource { bounded: true })),
                ("bounded", _) => {}
                _ => {
                    return Err(OptionError::Unknown {
                        name: name.clone(),
                        connector: "fake".to_owned(),
                        nearest: Some("bounded".to_owned()),
                    });
                }
            }
        }
        Ok(Arc::new(FakeSource { bounded: false }))
    }

    fn sink(
        &self,
        _definition: &SinkDefinition,
        _ctx: &ConnectorContext,
    ) -> Result<Arc<dyn Sink>, OptionError> {
        Ok(Arc::new(FakeSink))
    }
}

#[derive(Debug)]
struct FakeSource {
    bounded: bool,
}

impl Source for FakeSource {
    fn is_bounded(&self) -> bool {
        self.bounded
    }

    fn splits(&self) -> dataflow::Result<Vec<Split>> {
        Ok(Vec::new())
    }

    fn open(&self, _split: &Split, _position: i64) -> dataflow::Result<Box<dyn SplitReader>> {
        unreachable!("it has no split")
    }

    fn decoder(&self, _columns: &[usize]) -> dataflow::Result<Arc<dyn Decoder>> {
        unreachable!("it has no split")
    }
}

#[derive(Debug)]
struct FakeSink;

impl Sink for FakeSink {
    fn open(&self, _subtask: usize) -> dataflow::Result<Box<dyn SinkWriter>> {
        unreachable!("nothing runs")
    }
}
