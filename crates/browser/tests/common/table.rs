//! Rows of the table command × case: an obstacle, what the agent does there, and what must then be true, in the
//! order it happens. Unless it says `later`, what must be true is true the moment the command has returned.

use proto::ErrorCode;
use serde_json::{Map, Value, json};

use super::{stage::with_instance, tester::Tester};

pub(crate) struct Case {
    pub(crate) path: &'static str,
    pub(crate) steps: &'static [Step],
}

pub(crate) enum Step {
    /// A command as JSON.
    Run(&'static str),
    /// A command that takes the number of an element, and its further arguments.
    On(&'static str, &'static str, &'static str),
    /// A command that takes a point: the middle of an element.
    At(&'static str, &'static str, &'static str),
    Visit(&'static str),
    /// This step fails for that reason, and says these words.
    Fails(&'static Step, ErrorCode, &'static str),
    /// A line of the page's log, word for word.
    Says(&'static str),
    NeverSays(&'static str),
    /// A script that is true in the page.
    Holds(&'static str),
    /// True in the end: what the page does after the command on its own account.
    Later(&'static str),
    Shows(&'static str, &'static str),
    /// The address of the page ends so.
    IsAt(&'static str),
    OneWindow,
}

pub(crate) use Step::{Fails, Holds, IsAt, Later, NeverSays, OneWindow, Run, Says, Shows, Visit};

pub(crate) const fn on(command: &'static str, element: &'static str) -> Step {
    Step::On(command, element, "{}")
}

pub(crate) const fn on_with(command: &'static str, element: &'static str, more: &'static str) -> Step {
    Step::On(command, element, more)
}

pub(crate) const fn at(command: &'static str, element: &'static str) -> Step {
    Step::At(command, element, "{}")
}

pub(crate) const fn at_with(command: &'static str, element: &'static str, more: &'static str) -> Step {
    Step::At(command, element, more)
}

impl Step {
    /// The command this step sends, if it sends one.
    pub(crate) fn command(&self) -> Option<String> {
        match self {
            Self::Run(command) => parse(command).keys().next().cloned(),
            Self::On(command, ..) | Self::At(command, ..) => Some((*command).to_owned()),
            Self::Visit(_) => Some("visit_page".to_owned()),
            Self::Fails(step, ..) => step.command(),
            _ => None,
        }
    }
}

impl Step {
    /// Where this step leads, if it is a visit.
    pub(crate) fn address(&self) -> Option<&'static str> {
        match self {
            Self::Visit(path) => Some(path),
            Self::Fails(step, ..) => step.address(),
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
            tester.take(step).await;
        }
    });
}

impl Tester {
    async fn resolve(&mut self, step: &Step) -> Value {
        match step {
            Step::Run(command) => Value::Object(parse(command)),
            Step::Visit(path) => json!({"visit_page": {"url": self.address(path)}}),
            Step::On(command, element, more) => {
                let mut arguments = parse(more);
                arguments.insert("id".into(), self.mark(element).await.into());
                json!({ *command: arguments })
            }
            Step::At(command, element, more) => {
                let (x, y) = self.find(element).await.centre();
                let mut arguments = parse(more);
                arguments.extend([("x".to_owned(), x.into()), ("y".to_owned(), y.into())]);
                json!({ *command: arguments })
            }
            _ => panic!("not a command"),
        }
    }

    pub(crate) async fn take(&mut self, step: &Step) {
        match step {
            Step::Run(_) | Step::Visit(_) | Step::On(..) | Step::At(..) => {
                let command = self.resolve(step).await;
                self.run(command).await;
            }
            Step::Fails(step, code, words) => {
                let command = self.resolve(step).await;
                let error = self.fails(command).await;
                assert_eq!(error.code(), *code, "{error}");
                assert!(error.to_string().contains(words), "{error}");
            }
            Step::Later(script) => self.until(script).await,
            Step::OneWindow => self.until_one_window().await,
            truth => self.check(truth).await,
        }
    }

    async fn check(&self, truth: &Step) {
        match truth {
            Step::Says(line) => {
                let log = self.log().await;
                assert!(log.iter().any(|said| said == line), "{line:?} is not in {log:?}");
            }
            Step::NeverSays(line) => {
                let log = self.log().await;
                assert!(!log.iter().any(|said| said == line), "{line:?} is in {log:?}");
            }
            Step::Holds(script) => {
                let answer = self.js(script).await;
                assert_eq!(answer, json!(true), "{script}; log: {:?}", self.log().await);
            }
            Step::Shows(selector, text) => assert_eq!(self.text(selector).await, *text, "{selector}"),
            Step::IsAt(end) => {
                let url = self.js("location.href").await;
                assert!(url.as_str().is_some_and(|url| url.ends_with(end)), "{url} does not end in {end}");
            }
            _ => panic!("not something to check"),
        }
    }
}

/// Makes a test of every row, and keeps the rows so that the table as a whole can be checked.
macro_rules! table {
    ($($name:ident: $path:literal => [$($step:expr),* $(,)?];)*) => {
        pub(crate) const TABLE: &[$crate::common::table::Case] = &[
            $($crate::common::table::Case { path: $path, steps: &[$($step),*] }),*
        ];
        table!(@tests [$($name)*]);
    };
    (@tests [$($name:ident)*]) => {
        #[derive(Clone, Copy)]
        #[allow(non_camel_case_types, reason = "the names of the tests, counted")]
        enum Row { $($name),* }
        $(#[test]
        fn $name() {
            $crate::common::table::run_case(&TABLE[Row::$name as usize]);
        })*
    };
}
pub(crate) use table;
