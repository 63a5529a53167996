//! Columns by name and kind, and the Parquet schema that they make.

/// What a column holds. Lists have Parquet's standard three levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    OptionalText,
    /// Text that is JSON, or null.
    OptionalJson,
    Int,
    Bool,
    OptionalBool,
    OptionalBytes,
    OptionalIntList,
    OptionalDoubleList,
    TextList,
    /// A list of records with text fields of these names.
    Records(&'static [&'static str]),
    /// A record of further columns.
    Group(&'static [Column]),
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

    fn write(&self, schema: &mut String) {
        let name = self.name;
        let list = |element: &str| format!("(LIST) {{ repeated group list {{ required {element} }} }}");
        let line = match self.kind {
            Kind::Text => format!("required binary {name} (STRING);"),
            Kind::OptionalText | Kind::OptionalJson => format!("optional binary {name} (STRING);"),
            Kind::Int => format!("required int64 {name};"),
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
                    column.write(&mut inner);
                }
                format!("required group {name} {{ {inner} }}")
            }
        };
        schema.push_str(&line);
        schema.push('\n');
    }
}

/// The schema in Parquet's own notation.
pub(super) fn message(name: &str, columns: &[Column]) -> String {
    let mut schema = format!("message {name} {{\n");
    for column in columns {
        column.write(&mut schema);
    }
    schema.push('}');
    schema
}
