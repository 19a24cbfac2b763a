//! Functions about what is in the catalog: definitions, names of numbers, sizes.

use catalog::Relation;
use datafusion::common::Result;
use sql::SqlErrorKind;

use super::Returns::{Bool, Int8, Text};
use super::{Definition, FunctionContext, number, text};
use crate::batch::external;
use crate::pg_catalog::objects::{
    index_definition, index_name, key_columns, keyed_relation, namespaces, quote_identifier, view_definition,
};
use crate::pg_catalog::types::{by_name, format_type};
use crate::system::Datum;

const NULL: fn(&FunctionContext, &[Datum]) -> Result<Datum> = |_, _| Ok(Datum::Null);
const EMPTY: fn(&FunctionContext, &[Datum]) -> Result<Datum> = |_, _| Ok("".into());

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition { names: &["pg_table_is_visible"], returns: Bool, call: is_visible },
    Definition {
        names: &[
            "pg_type_is_visible",
            "pg_function_is_visible",
            "pg_operator_is_visible",
            "pg_opclass_is_visible",
            "pg_collation_is_visible",
            "pg_conversion_is_visible",
            "pg_statistics_obj_is_visible",
            "pg_ts_config_is_visible",
            "pg_ts_dict_is_visible",
            "pg_ts_parser_is_visible",
            "pg_ts_template_is_visible",
        ],
        returns: Bool,
        call: |_, _| Ok(true.into()),
    },
    Definition {
        names: &["pg_get_userbyid", "regrole_out"],
        returns: Text,
        call: |ctx, _| Ok(ctx.system.user.clone().into()),
    },
    Definition {
        names: &["format_type"],
        returns: Text,
        call: |_, arguments| {
            Ok(number(arguments, 0).map(|oid| format_type(oid, number(arguments, 1))).into())
        },
    },
    Definition {
        names: &["pg_get_expr"],
        returns: Text,
        call: |_, arguments| Ok(text(arguments, 0).map(str::to_owned).into()),
    },
    Definition { names: &["pg_get_indexdef"], returns: Text, call: indexdef },
    Definition { names: &["pg_get_constraintdef"], returns: Text, call: constraintdef },
    Definition { names: &["pg_get_viewdef"], returns: Text, call: viewdef },
    Definition {
        names: &[
            "pg_get_ruledef",
            "pg_get_triggerdef",
            "pg_get_partkeydef",
            "pg_get_serial_sequence",
            "pg_get_statisticsobjdef_columns",
            "pg_get_functiondef",
            "obj_description",
            "col_description",
            "shobj_description",
        ],
        returns: Text,
        call: NULL,
    },
    Definition {
        names: &[
            "pg_get_function_result",
            "pg_get_function_arguments",
            "pg_get_function_identity_arguments",
            "pg_tablespace_location",
        ],
        returns: Text,
        call: EMPTY,
    },
    Definition { names: &["pg_encoding_to_char"], returns: Text, call: |_, _| Ok("UTF8".into()) },
    Definition {
        names: &[
            "pg_table_size",
            "pg_relation_size",
            "pg_total_relation_size",
            "pg_indexes_size",
            "pg_database_size",
        ],
        returns: Int8,
        call: |_, _| Ok(0_i64.into()),
    },
    Definition { names: &["pg_size_pretty"], returns: Text, call: size_pretty },
    Definition { names: &["pg_relation_is_publishable"], returns: Bool, call: |_, _| Ok(false.into()) },
    Definition {
        names: &["quote_ident"],
        returns: Text,
        call: |_, arguments| Ok(text(arguments, 0).map(quote_identifier).into()),
    },
    Definition {
        names: &["quote_literal"],
        returns: Text,
        call: |_, arguments| {
            Ok(text(arguments, 0).map(|text| format!("'{}'", text.replace('\'', "''"))).into())
        },
    },
    // What the casts to `reg…` types are rewritten to.
    Definition { names: &["regclass_in", "to_regclass"], returns: Int8, call: regclass_in },
    Definition { names: &["regclass_out"], returns: Text, call: regclass_out },
    Definition { names: &["regtype_in", "to_regtype"], returns: Int8, call: regtype_in },
    Definition {
        names: &["regtype_out"],
        returns: Text,
        call: |_, arguments| Ok(number(arguments, 0).map(|oid| format_type(oid, None)).into()),
    },
    Definition { names: &["regnamespace_in", "to_regnamespace"], returns: Int8, call: regnamespace_in },
    Definition { names: &["regnamespace_out"], returns: Text, call: regnamespace_out },
    Definition {
        names: &["regproc_out"],
        returns: Text,
        call: |_, arguments| {
            Ok(number(arguments, 0).map(|oid| if oid == 0 { "-".to_owned() } else { oid.to_string() }).into())
        },
    },
    Definition { names: &["pg_array_has"], returns: Bool, call: array_has },
    Definition { names: &["pg_array_remove"], returns: Text, call: array_remove },
    Definition { names: &["pg_array_to_string"], returns: Text, call: array_to_string },
];

fn relation(ctx: &FunctionContext, oid: i64) -> Option<&Relation> {
    let oid = u32::try_from(oid).ok()?;
    ctx.system.live.catalog.relation_by_id(catalog::RelationId(oid))
}

/// Side relations are found by name only, so that lists stay short.
fn is_visible(ctx: &FunctionContext, arguments: &[Datum]) -> Result<Datum> {
    let Some(oid) = number(arguments, 0) else { return Ok(Datum::Null) };
    let owner = relation(ctx, oid).or_else(|| keyed_relation(&ctx.system.live, oid));
    Ok(match owner {
        Some(relation) => (relation.schema == catalog::Catalog::PUBLIC && relation.parent().is_none()).into(),
        None => Datum::Null,
    })
}

fn indexdef(ctx: &FunctionContext, arguments: &[Datum]) -> Result<Datum> {
    let Some(relation) = number(arguments, 0).and_then(|oid| keyed_relation(&ctx.system.live, oid)) else {
        return Ok(Datum::Null);
    };
    Ok(match number(arguments, 1).and_then(|column| usize::try_from(column).ok()) {
        None | Some(0) => index_definition(relation).into(),
        Some(column) => key_columns(relation).get(column - 1).cloned().into(),
    })
}

fn constraintdef(ctx: &FunctionContext, arguments: &[Datum]) -> Result<Datum> {
    let relation = number(arguments, 0).and_then(|oid| keyed_relation(&ctx.system.live, oid));
    Ok(relation.map(|relation| format!("PRIMARY KEY ({})", key_columns(relation).join(", "))).into())
}

fn viewdef(ctx: &FunctionContext, arguments: &[Datum]) -> Result<Datum> {
    let relation = match (number(arguments, 0), text(arguments, 0)) {
        (Some(oid), _) => relation(ctx, oid),
        (None, Some(name)) => named(ctx, name),
        (None, None) => None,
    };
    Ok(relation.and_then(view_definition).into())
}

fn size_pretty(_: &FunctionContext, arguments: &[Datum]) -> Result<Datum> {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    let Some(mut size) = number(arguments, 0) else { return Ok(Datum::Null) };
    // As PostgreSQL does: a unit is used from ten times its size on, rounded half up.
    if size.abs() < 10 * 1024 {
        return Ok(format!("{size} bytes").into());
    }
    size /= 512;
    for unit in UNITS {
        if size.abs() < 20 * 1024 - 1 || unit == "PB" {
            return Ok(format!("{} {unit}", (size + 1) / 2).into());
        }
        size /= 1024;
    }
    Ok(Datum::Null)
}

/// Finds a relation by `name` or `schema.name`, as in `'public.t'::regclass`.
fn named<'a>(ctx: &'a FunctionContext, name: &str) -> Option<&'a Relation> {
    let (schema, name) = match name.split_once('.') {
        Some((schema, name)) => (Some(schema.trim_matches('"')), name),
        None => (None, name),
    };
    ctx.system.live.catalog.relation(schema, name.trim_matches('"'))
}

fn regclass_in(ctx: &FunctionContext, arguments: &[Datum]) -> Result<Datum> {
    if let Some(oid) = number(arguments, 0) {
        return Ok(oid.into());
    }
    let Some(name) = text(arguments, 0) else { return Ok(Datum::Null) };
    if let Some(relation) = named(ctx, name) {
        return Ok(relation.id.0.into());
    }
    // System tables have no number; 0 names nothing.
    let (schema, table) = match name.split_once('.') {
        Some((schema, table)) => (Some(schema), table),
        None => (None, name),
    };
    if crate::system::find(schema, table).is_some() {
        return Ok(0_i64.into());
    }
    Err(external(SqlErrorKind::UndefinedTable { name: name.to_owned() }.into()))
}

fn regclass_out(ctx: &FunctionContext, arguments: &[Datum]) -> Result<Datum> {
    let Some(oid) = number(arguments, 0) else { return Ok(text(arguments, 0).map(str::to_owned).into()) };
    let qualified = |relation: &Relation, name: &str| {
        if relation.schema == catalog::Catalog::PUBLIC {
            quote_identifier(name)
        } else {
            format!("{}.{}", quote_identifier(&relation.schema), quote_identifier(name))
        }
    };
    if let Some(relation) = relation(ctx, oid) {
        return Ok(qualified(relation, &relation.name).into());
    }
    if let Some(relation) = keyed_relation(&ctx.system.live, oid) {
        return Ok(qualified(relation, &index_name(relation)).into());
    }
    Ok(if oid == 0 { "-".to_owned() } else { oid.to_string() }.into())
}

fn regtype_in(_: &FunctionContext, arguments: &[Datum]) -> Result<Datum> {
    if let Some(oid) = number(arguments, 0) {
        return Ok(oid.into());
    }
    let Some(name) = text(arguments, 0) else { return Ok(Datum::Null) };
    match by_name(name.trim_start_matches("pg_catalog.")) {
        Some(entry) => Ok(entry.oid.into()),
        None => Err(external(SqlErrorKind::UndefinedType { name: name.to_owned() }.into())),
    }
}

fn regnamespace_in(ctx: &FunctionContext, arguments: &[Datum]) -> Result<Datum> {
    if let Some(oid) = number(arguments, 0) {
        return Ok(oid.into());
    }
    let Some(name) = text(arguments, 0) else { return Ok(Datum::Null) };
    match namespaces(&ctx.system.live).into_iter().find(|(_, other)| other == name) {
        Some((oid, _)) => Ok(oid.into()),
        None => Err(external(SqlErrorKind::UndefinedSchema { name: name.to_owned() }.into())),
    }
}

fn regnamespace_out(ctx: &FunctionContext, arguments: &[Datum]) -> Result<Datum> {
    let Some(oid) = number(arguments, 0) else { return Ok(Datum::Null) };
    let known = namespaces(&ctx.system.live).into_iter().find(|(other, _)| i64::from(*other) == oid);
    Ok(known.map_or_else(|| oid.to_string(), |(_, name)| quote_identifier(&name)).into())
}

/// The elements of a catalog array, which is text like `{a,b}`.
fn elements(array: &str) -> Vec<&str> {
    let inner = array.trim_start_matches(['{', '[']).trim_end_matches(['}', ']']);
    inner.split(',').map(str::trim).filter(|element| !element.is_empty()).collect()
}

/// `element = ANY (array)`.
fn array_has(_: &FunctionContext, arguments: &[Datum]) -> Result<Datum> {
    let Some(array) = text(arguments, 0) else { return Ok(Datum::Null) };
    let element = match arguments.get(1) {
        Some(Datum::Text(text)) => text.clone(),
        Some(Datum::Int(number)) => number.to_string(),
        Some(Datum::Null | Datum::Bool(_)) | None => return Ok(Datum::Null),
    };
    Ok(elements(array).contains(&element.as_str()).into())
}

fn array_remove(_: &FunctionContext, arguments: &[Datum]) -> Result<Datum> {
    let Some(array) = text(arguments, 0) else { return Ok(Datum::Null) };
    let removed = text(arguments, 1);
    let kept: Vec<&str> = elements(array).into_iter().filter(|element| Some(*element) != removed).collect();
    Ok(format!("{{{}}}", kept.join(",")).into())
}

fn array_to_string(_: &FunctionContext, arguments: &[Datum]) -> Result<Datum> {
    let Some(array) = text(arguments, 0) else { return Ok(Datum::Null) };
    Ok(elements(array).join(text(arguments, 1).unwrap_or(",")).into())
}
