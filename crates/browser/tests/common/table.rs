//! Table-driven test cases: a page, and a list of commands and checks that run in order. A check must hold as soon as the
//! command before it has returned, except `Eventually`.

use proto::ErrorCode;
use serde_json::{Map, Value, json};

use super::{fixture::with_instance, tester::Tester};

pub(crate) struct Case {
    pub(crate) path: &'static str,
    pub(crate) steps: &'static [Step],
}

pub(crate) enum Step {
    /// Runs a command, given as JSON.
    Run(&'static str),
    /// Runs a command on an element by its mark id: command, selector, further arguments.
    ById(&'static str, &'static str, &'static str),
    /// Runs a command at the centre of an element: command, selector, further arguments.
    ByPoint(&'static str, &'static str, &'static str),
    /// Visits a path of the practice sites, or a URL.
    Visit(&'static str),
    /// The step fails with this code and a message that contains this text.
    Fails(&'static Step, ErrorCode, &'static str),
    /// The log of the page contains this line.
    Logged(&'static str),
    /// The log of the page does not contain this line.
    NotLogged(&'static str),
    /// The script evaluates to true in the page.
    IsTrue(&'static str),
    /// The script evaluates to true after some time, for what the page does later by itself.
    Eventually(&'static str),
    /// The element with this selector has this text.
    HasText(&'static str, &'static str),
    /// The URL of the page ends with this text.
    UrlEndsWith(&'static str),
    /// The instance has a single window, at the latest after some time.
    SingleWindow,
}

pub(crate) use Step::{
    Eventually, Fails, HasText, IsTrue, Logged, NotLogged, Run, SingleWindow, UrlEndsWith, Visit,
};

pub(crate) const fn by_id(command: &'static str, element: &'static str) -> Step {
    Step::ById(command, element, "{}")
}

pub(crate) const fn by_id_with(
    command: &'static str,
    element: &'static str,
    arguments: &'static str,
) -> Step {
    Step::ById(command, element, arguments)
}

pub(crate) const fn by_point(command: &'static str, element: &'static str) -> Step {
    Step::ByPoint(command, element, "{}")
}

pub(crate) const fn by_point_with(
    command: &'static str,
    element: &'static str,
    arguments: &'static str,
) -> Step {
    Step::ByPoint(command, element, arguments)
}

impl Step {
    /// The command that this step runs, if any.
    pub(crate) fn command(&self) -> Option<String> {
        match self {
            Self::Run(command) => parse(command).keys().next().cloned(),
            Self::ById(command, ..) | Self::ByPoint(command, ..) => Some((*command).to_owned()),
            Self::Visit(_) => Some("visit_page".to_owned()),
            Self::Fails(step, ..) => step.command(),
            _ => None,
        }
    }
}

impl Step {
    /// The path that this step visits, if any.
    pub(crate) fn visited_path(&self) -> Option<&'static str> {
        match self {
            Self::Visit(path) => Some(path),
            Self::Fails(step, ..) => step.visited_path(),
            _ => None,
        }
    }
}

fn parse(text: &str) -> Map<String, Value> {
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => map,
        other => panic!("{text} is not a JSON object: {other:?}"),
    }
}

pub(crate) fn run_case(case: &Case) {
    with_instance(async |tester| {
        tester.visit(case.path).await;
        for step in case.steps {
            tester.run_step(step).await;
        }
    });
}

impl Tester {
    /// Returns the command of a step as JSON, with element ids and points filled in.
    async fn resolve(&mut self, step: &Step) -> Value {
        match step {
            Step::Run(command) => Value::Object(parse(command)),
            Step::Visit(path) => json!({"visit_page": {"url": self.url(path)}}),
            Step::ById(command, element, more) => {
                let mut arguments = parse(more);
                arguments.insert("id".into(), self.mark(element).await.into());
                json!({ *command: arguments })
            }
            Step::ByPoint(command, element, more) => {
                let (x, y) = self.find(element).await.centre();
                let mut arguments = parse(more);
                arguments.extend([("x".to_owned(), x.into()), ("y".to_owned(), y.into())]);
                json!({ *command: arguments })
            }
            _ => panic!("this step runs no command"),
        }
    }

    pub(crate) async fn run_step(&mut self, step: &Step) {
        match step {
            Step::Run(_) | Step::Visit(_) | Step::ById(..) | Step::ByPoint(..) => {
                let command = self.resolve(step).await;
                self.run(command).await;
            }
            Step::Fails(step, code, text) => {
                let command = self.resolve(step).await;
                let error = self.expect_error(command).await;
                assert_eq!(error.code(), *code, "{error}");
                assert!(error.to_string().contains(text), "{error}");
            }
            Step::Eventually(script) => self.wait_until(script).await,
            Step::SingleWindow => self.wait_until_single_window().await,
            check => self.check(check).await,
        }
    }

    async fn check(&self, step: &Step) {
        match step {
            Step::Logged(line) => {
                let log = self.log().await;
                assert!(log.iter().any(|logged| logged == line), "{line:?} is not in {log:?}");
            }
            Step::NotLogged(line) => {
                let log = self.log().await;
                assert!(!log.iter().any(|logged| logged == line), "{line:?} is in {log:?}");
            }
            Step::IsTrue(script) => {
                let result = self.js(script).await;
                assert_eq!(result, json!(true), "{script}; log: {:?}", self.log().await);
            }
            Step::HasText(selector, text) => assert_eq!(self.text(selector).await, *text, "{selector}"),
            Step::UrlEndsWith(end) => {
                let url = self.js("location.href").await;
                assert!(url.as_str().is_some_and(|url| url.ends_with(end)), "{url} does not end in {end}");
            }
            _ => panic!("this step is not a check"),
        }
    }
}

/// Defines one test per row, and a constant with all rows so that the coverage of the table can be checked.
macro_rules! table {
    ($($name:ident: $path:literal => [$($step:expr),* $(,)?];)*) => {
        pub(crate) const TABLE: &[$crate::common::table::Case] = &[
            $($crate::common::table::Case { path: $path, steps: &[$($step),*] }),*
        ];
        table!(@tests [$($name)*]);
    };
    (@tests [$($name:ident)*]) => {
        #[derive(Clone, Copy)]
        #[allow(non_camel_case_types, reason = "test names, used as row indices")]
        enum Row { $($name),* }
        $(#[test]
        fn $name() {
            $crate::common::table::run_case(&TABLE[Row::$name as usize]);
        })*
    };
}
pub(crate) use table;
