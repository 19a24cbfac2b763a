use arrow::datatypes::{DataType, Field, TimeUnit};

use super::*;
use crate::{Column, SideKind};

fn relation(catalog: &mut Catalog, name: &str, kind: RelationKind, reads: &[RelationId]) -> Relation {
    let column = |name: &str, data_type: DataType| Column {
        name: name.to_owned(),
        data_type,
        nullable: true,
        type_name: None,
        default: None,
    };
    Relation {
        id: catalog.allocate_relation(),
        schema: Catalog::PUBLIC.to_owned(),
        name: name.to_owned(),
        kind,
        columns: vec![
            column("text", DataType::Utf8View),
            column("ts", DataType::Timestamp(TimeUnit::Microsecond, None)),
            column("tstz", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
            column("amount", DataType::Decimal128(38, 10)),
            column("tags", DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true)))),
        ],
        definition: format!("CREATE … {name}"),
        settings: BTreeMap::from([("timezone".to_owned(), "UTC".to_owned())]),
        dependencies: reads.to_vec(),
        first_table: catalog.allocate_tables(2),
        table_count: 2,
        graph_hash: u64::MAX,
        owner: "postgres".to_owned(),
    }
}

/// `s` (a source with `s$errors`) ← `v` (with `v$late`) ← `w`; `x` reads `v$late`.
fn sample() -> Catalog {
    let mut catalog = Catalog::new();
    let source = RelationKind::Source { connector: "file".to_owned(), bounded: true };
    let s = relation(&mut catalog, "s", source, &[]);
    let errors = RelationKind::Side { parent: s.id, kind: SideKind::Errors };
    let errors = relation(&mut catalog, "s$errors", errors, &[]);
    let (s_id, both) = (s.id, vec![s, errors]);
    catalog.create(both).unwrap();
    let v = relation(&mut catalog, "v", RelationKind::MaterializedView, &[s_id]);
    let late = RelationKind::Side { parent: v.id, kind: SideKind::Late };
    let late = relation(&mut catalog, "v$late", late, &[]);
    let (v_id, late_id) = (v.id, late.id);
    catalog.create(vec![v, late]).unwrap();
    let w = relation(&mut catalog, "w", RelationKind::View, &[v_id]);
    catalog.create(vec![w]).unwrap();
    let x = relation(&mut catalog, "x", RelationKind::View, &[late_id]);
    catalog.create(vec![x]).unwrap();
    catalog
}

fn names(relations: &[Relation]) -> Vec<&str> {
    relations.iter().map(|relation| relation.name.as_str()).collect()
}

fn id(catalog: &Catalog, name: &str) -> RelationId {
    catalog.relation(None, name).unwrap().id
}

fn apply(stored: &mut BTreeMap<Vec<u8>, Vec<u8>>, writes: MetaWrites) {
    for (key, value) in writes {
        match value {
            Some(value) => stored.insert(key, value),
            None => stored.remove(&key),
        };
    }
}

fn load(stored: &BTreeMap<Vec<u8>, Vec<u8>>) -> Result<Catalog, CatalogError> {
    let entries: Vec<_> = stored.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    Catalog::load(&entries)
}

#[test]
fn what_was_stored_is_loaded() {
    let mut catalog = Catalog::new();
    let mut stored = BTreeMap::new();
    apply(&mut stored, catalog.create_schema("extra").unwrap());
    let table = RelationKind::Table { primary_key: vec![0] };
    let t = relation(&mut catalog, "t", table, &[]);
    apply(&mut stored, catalog.create(vec![t]).unwrap());
    let v = relation(&mut catalog, "v", RelationKind::MaterializedView, &[RelationId(16384)]);
    apply(&mut stored, catalog.create(vec![v]).unwrap());

    let loaded = load(&stored).unwrap();
    assert_eq!(loaded.relations(), catalog.relations());
    assert_eq!(loaded.schemas(), ["extra", "public"]);
    assert_eq!(loaded.content.next, catalog.content.next);

    let (_, writes) = catalog.drop_relations(&[RelationId(16384)], true).unwrap();
    apply(&mut stored, writes);
    let (_, writes) = catalog.drop_schema("extra", false).unwrap();
    apply(&mut stored, writes);
    let mut loaded = load(&stored).unwrap();
    assert!(loaded.relations().is_empty());
    assert_eq!(loaded.schemas(), ["public"]);
    assert_eq!(loaded.allocate_relation(), RelationId(16386), "ids are never given twice");
    assert_eq!(loaded.allocate_tables(1), 5);
}

#[test]
fn damaged_and_newer_entries_are_refused() {
    let mut catalog = sample();
    let w = catalog.relation(None, "w").unwrap().clone();
    let writes = catalog.replace(w).unwrap();
    let (key, value) = (writes[0].0.clone(), writes[0].1.clone().unwrap());
    let damaged = |value: Vec<u8>| Catalog::load(&[(key.clone(), value)]).unwrap_err().to_string();

    let newer = String::from_utf8(value.clone()).unwrap().replace("\"version\":1", "\"version\":2");
    assert!(damaged(newer.into_bytes()).contains("version 2 is not known"));
    assert!(damaged(value[..value.len() - 1].to_vec()).contains("is damaged"));
    assert!(damaged(value).contains("it needs relation 16386"), "a dependency is missing");
    assert!(Catalog::load(&[(b"catalog/other".to_vec(), Vec::new())]).is_err());
}

#[test]
fn names_are_found_exactly_first_and_then_without_case_if_unique() {
    let mut catalog = Catalog::new();
    for name in ["Bid", "bid", "userId", "A", "a"] {
        let table = relation(&mut catalog, name, RelationKind::Table { primary_key: vec![] }, &[]);
        catalog.create(vec![table]).unwrap();
    }
    let found = |name: &str| catalog.relation(None, name).map(|relation| relation.name.as_str());
    assert_eq!(found("bid"), Some("bid"));
    assert_eq!(found("userid"), Some("userId"));
    assert_eq!(found("BID"), None, "two candidates");
    assert!(catalog.relation(Some("other"), "bid").is_none());
    assert!(catalog.relation(Some("public"), "Bid").is_some());
}

#[test]
fn a_refused_change_leaves_the_catalog_as_it_was() {
    let mut catalog = sample();
    let before = catalog.relations().len();
    let fresh = relation(&mut catalog, "fresh", RelationKind::View, &[]);
    let twice = relation(&mut catalog, "v", RelationKind::View, &[]);
    assert_eq!(
        catalog.create(vec![fresh.clone(), twice]),
        Err(CatalogError::DuplicateRelation("v".to_owned()))
    );
    let elsewhere = Relation { schema: "nope".to_owned(), ..fresh };
    assert_eq!(catalog.create(vec![elsewhere]), Err(CatalogError::UndefinedSchema("nope".to_owned())));
    assert_eq!(catalog.relations().len(), before);
    assert!(catalog.relation(None, "fresh").is_none());
}

#[test]
fn a_clone_does_not_see_later_changes() {
    let mut catalog = sample();
    let reader = catalog.clone();
    let (v, w, x) = (id(&catalog, "v"), id(&catalog, "w"), id(&catalog, "x"));
    catalog.drop_relations(&[x, w, v], false).unwrap();
    assert!(catalog.relation(None, "v").is_none());
    assert!(reader.relation(None, "v").is_some());
}

#[test]
fn dependents_are_named_and_dropped_only_by_cascade() {
    let mut catalog = sample();
    let s = id(&catalog, "s");
    assert_eq!(
        catalog.drop_relations(&[s], false),
        Err(CatalogError::Dependents {
            name: "source s".to_owned(),
            dependents: vec![
                "materialized view v depends on source s".to_owned(),
                "view w depends on materialized view v".to_owned(),
                "view x depends on relation v$late".to_owned(),
            ],
        })
    );
    let (dropped, _) = catalog.drop_relations(&[s], true).unwrap();
    assert_eq!(names(&dropped), ["x", "w", "v$late", "v", "s$errors", "s"]);
    assert!(catalog.relations().is_empty());
}

#[test]
fn side_relations_are_dropped_with_their_parent_and_never_alone() {
    let mut catalog = sample();
    let side = id(&catalog, "s$errors");
    assert_eq!(
        catalog.drop_relations(&[side], true).unwrap_err().to_string(),
        "cannot drop relation s$errors because source s requires it"
    );
    assert_eq!(catalog.side_relations(id(&catalog, "s")).len(), 1);
    let (w, x) = (id(&catalog, "w"), id(&catalog, "x"));
    catalog.drop_relations(&[w, x], false).unwrap();
    let v = id(&catalog, "v");
    let (dropped, _) = catalog.drop_relations(&[v], false).unwrap();
    assert_eq!(names(&dropped), ["v$late", "v"]);
}

#[test]
fn schemas_hold_relations_and_public_stays() {
    let mut catalog = Catalog::new();
    catalog.create_schema("extra").unwrap();
    assert_eq!(catalog.create_schema("extra"), Err(CatalogError::DuplicateSchema("extra".to_owned())));
    assert_eq!(catalog.create_schema("pg_x"), Err(CatalogError::ReservedSchema("pg_x".to_owned())));
    let mut t = relation(&mut catalog, "t", RelationKind::Table { primary_key: vec![] }, &[]);
    t.schema = "extra".to_owned();
    catalog.create(vec![t]).unwrap();
    assert!(catalog.relation(None, "t").is_none());
    assert_eq!(
        catalog.drop_schema("extra", false),
        Err(CatalogError::Dependents {
            name: "schema extra".to_owned(),
            dependents: vec!["table extra.t depends on schema extra".to_owned()],
        })
    );
    let (dropped, _) = catalog.drop_schema("extra", true).unwrap();
    assert_eq!(names(&dropped), ["t"]);
    assert!(catalog.drop_schema("public", true).is_err());
}
