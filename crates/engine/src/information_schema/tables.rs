//! `information_schema.tables`: tables, sources and views of every kind.

use catalog::RelationKind;

use super::{table_type, yes_no};
use crate::system::ColumnType::Text;
use crate::system::{Row, SystemContext, SystemTable};

pub(crate) const TABLES: SystemTable = SystemTable {
    name: "tables",
    columns: &[
        ("table_catalog", Text),
        ("table_schema", Text),
        ("table_name", Text),
        ("table_type", Text),
        ("self_referencing_column_name", Text),
        ("reference_generation", Text),
        ("user_defined_type_catalog", Text),
        ("user_defined_type_schema", Text),
        ("user_defined_type_name", Text),
        ("is_insertable_into", Text),
        ("is_typed", Text),
        ("commit_action", Text),
    ],
    rows,
};

fn rows(ctx: &SystemContext) -> Vec<Row> {
    let relations = ctx.live.catalog.relations();
    let typed = relations.into_iter().filter_map(|relation| Some((relation, table_type(relation)?)));
    typed
        .map(|(relation, table_type)| {
            vec![
                ("table_catalog", ctx.database.clone().into()),
                ("table_schema", relation.schema.clone().into()),
                ("table_name", relation.name.clone().into()),
                ("table_type", table_type.into()),
                ("is_insertable_into", yes_no(matches!(relation.kind, RelationKind::Table { .. })).into()),
                ("is_typed", "NO".into()),
            ]
        })
        .collect()
}
