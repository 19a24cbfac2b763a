//! Provisional.
pub(crate) fn register(_state: &mut datafusion::execution::SessionState) {}
pub(crate) fn output_names(
    _query: &sqlparser::ast::Query,
    schema: &datafusion::common::DFSchema,
) -> Vec<String> {
    schema.fields().iter().map(|f| f.name().clone()).collect()
}
pub(crate) fn quote_identifier(name: &str) -> String {
    name.to_owned()
}
