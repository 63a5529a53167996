//! Columns by name and kind, and the Parquet schema that they form.

/// The type of a column. Lists have Parquet's standard three levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    OptionalText,
    /// JSON text or null.
    OptionalJson,
    Int,
    OptionalInt,
    OptionalDouble,
    Bool,
    OptionalBool,
    OptionalBytes,
    OptionalIntList,
    OptionalDoubleList,
    TextList,
    /// A list of records with string fields of these names.
    Records(&'static [&'static str]),
    /// A record of nested columns.
    Group(&'static [Column]),
}

impl Kind {
    /// The type as `docs/formats.md` names it.
    pub(crate) const fn documented(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::OptionalText => "string or null",
            Self::OptionalJson => "JSON text or null",
            Self::Int => "int64",
            Self::OptionalInt => "int64 or null",
            Self::OptionalDouble => "double or null",
            Self::Bool => "bool",
            Self::OptionalBool => "bool or null",
            Self::OptionalBytes => "binary or null",
            Self::OptionalIntList => "list of int64, or null",
            Self::OptionalDoubleList => "list of double, or null",
            Self::TextList => "list of string",
            Self::Records(_) => "list of records",
            Self::Group(_) => "record",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

impl Column {
    pub(crate) const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, kind }
    }

    fn write_schema(&self, schema: &mut String) {
        let name = self.name;
        let list = |element: &str| format!("(LIST) {{ repeated group list {{ required {element} }} }}");
        let line = match self.kind {
            Kind::Text => format!("required binary {name} (STRING);"),
            Kind::OptionalText | Kind::OptionalJson => format!("optional binary {name} (STRING);"),
            Kind::Int => format!("required int64 {name};"),
            Kind::OptionalInt => format!("optional int64 {name};"),
            Kind::OptionalDouble => format!("optional double {name};"),
            Kind::Bool => format!("required boolean {name};"),
            Kind::OptionalBool => format!("optional boolean {name};"),
            Kind::OptionalBytes => format!("optional binary {name};"),
            Kind::OptionalIntList => format!("optional group {name} {}", list("int64 element;")),
            Kind::OptionalDoubleList => format!("optional group {name} {}", list("double element;")),
            Kind::TextList => format!("required group {name} {}", list("binary element (STRING);")),
            Kind::Records(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|field| format!("required binary {field} (STRING);")).collect();
                format!(
                    "required group {name} {}",
                    list(&format!("group element {{ {} }}", fields.join(" ")))
                )
            }
            Kind::Group(columns) => {
                let mut inner = String::new();
                for column in columns {
                    column.write_schema(&mut inner);
                }
                format!("required group {name} {{ {inner} }}")
            }
        };
        schema.push_str(&line);
        schema.push('\n');
    }
}

/// The schema in Parquet's notation.
pub(super) fn message_schema(name: &str, columns: &[Column]) -> String {
    let mut schema = format!("message {name} {{\n");
    for column in columns {
        column.write_schema(&mut schema);
    }
    schema.push('}');
    schema
}
