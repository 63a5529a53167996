//! What a replayed lease was told to do and what it showed, so that a fork can do the same and compare.

use std::hash::{DefaultHasher, Hash, Hasher};

use browser::{ObserveRequest, Screenshot};
use proto::{Command, StorageState, page::PageMetadata};

use super::{ObserveResult, Operation, OperationResult};
use crate::{computer::ComputerCall, error::ApiError};

/// A lease with more operations cannot be forked.
const MAX_OPERATIONS: usize = 2000;

/// The operations of a lease in their order.
#[derive(Default)]
pub(super) struct History {
    past: Vec<Past>,
    /// Operations that are not kept: too many, or such that a fork cannot repeat.
    missing: Option<&'static str>,
}

#[derive(Clone)]
pub(super) struct Past {
    pub(super) operation: Repeatable,
    pub(super) shown: Shown,
}

/// An operation that can be carried out again.
#[derive(Clone, Debug)]
pub(super) enum Repeatable {
    Execute(Command),
    Observe(ObserveRequest),
    Step { command: Command, observe: ObserveRequest },
    Computer(Box<ComputerCall>),
    SetStorageState(Box<StorageState>),
}

/// What an operation returned, as far as it must be the same again.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shown {
    /// The code of the error of the operation, or of its command.
    error: Option<&'static str>,
    page: Option<PageMetadata>,
    tree: Option<String>,
    answer: Option<String>,
    screenshot: Option<u64>,
}

impl Repeatable {
    /// `None` for operations that change nothing in the page.
    fn of(operation: &Operation) -> Option<Self> {
        Some(match operation {
            Operation::Execute(command) => Self::Execute(command.clone()),
            Operation::Observe(request) => Self::Observe(*request),
            Operation::Step { command, observe } => {
                Self::Step { command: command.clone(), observe: *observe }
            }
            Operation::Computer(call) => Self::Computer(call.clone()),
            Operation::SetStorageState(state) => Self::SetStorageState(state.clone()),
            _ => return None,
        })
    }

    pub(super) fn operation(&self) -> Operation {
        match self {
            Self::Execute(command) => Operation::Execute(command.clone()),
            Self::Observe(request) => Operation::Observe(*request),
            Self::Step { command, observe } => {
                Operation::Step { command: command.clone(), observe: *observe }
            }
            Self::Computer(call) => Operation::Computer(call.clone()),
            Self::SetStorageState(state) => Operation::SetStorageState(state.clone()),
        }
    }

    /// Whether it counts as a step of the client.
    pub(super) fn is_step(&self) -> bool {
        matches!(self, Self::Execute(_) | Self::Step { .. } | Self::Computer(_))
    }

    /// How a message names it.
    fn name(&self) -> &'static str {
        match self {
            Self::Execute(command) | Self::Step { command, .. } => command.name(),
            other => other.operation().name(),
        }
    }
}

/// An operation that is about to be carried out.
pub(super) enum Begun {
    Repeatable(Repeatable),
    /// A fork would miss it.
    Lost(&'static str),
    Irrelevant,
}

impl Begun {
    pub(super) fn of(operation: &Operation) -> Self {
        match operation {
            Operation::WriteFile { .. } | Operation::DeleteFile(_) => Self::Lost("its files were changed"),
            Operation::FollowWindows => Self::Lost("a person has controlled it"),
            _ => Repeatable::of(operation).map_or(Self::Irrelevant, Self::Repeatable),
        }
    }
}

impl History {
    pub(super) fn add(&mut self, begun: Begun, result: &Result<OperationResult, ApiError>) {
        match begun {
            Begun::Repeatable(_) if self.past.len() >= MAX_OPERATIONS => {
                self.missing = Some("it had more than 2000 operations");
            }
            Begun::Repeatable(operation) => self.past.push(Past { operation, shown: Shown::of(result) }),
            Begun::Lost(reason) => self.missing = Some(reason),
            Begun::Irrelevant => {}
        }
    }

    /// Returns the operations of the first steps, with what was observed after the last of them.
    pub(super) fn prefix(&self, steps: Option<usize>) -> Result<Vec<Past>, ApiError> {
        let bad =
            |reason: String| Err(ApiError::BadRequest(format!("this lease cannot be forked: {reason}")));
        if let Some(reason) = self.missing {
            return bad(reason.to_owned());
        }
        let total = self.past.iter().filter(|past| past.operation.is_step()).count();
        let Some(steps) = steps else { return Ok(self.past.clone()) };
        if steps > total {
            return bad(format!("it has had {total} steps, and the fork wants {steps}"));
        }
        let mut seen = 0;
        let is_included = |past: &&Past| {
            seen += usize::from(past.operation.is_step());
            seen <= steps
        };
        Ok(self.past.iter().take_while(is_included).cloned().collect())
    }
}

impl Shown {
    pub(super) fn of(result: &Result<OperationResult, ApiError>) -> Self {
        match result {
            Err(error) => Self { error: Some(error.code().as_str()), ..Self::default() },
            Ok(OperationResult::Answer(answer)) => {
                Self { answer: Some(answer.to_string()), ..Self::default() }
            }
            Ok(OperationResult::Observed(observed)) => Self::observed(observed),
            Ok(OperationResult::Computer(turn)) => Self {
                error: turn.error.as_ref().map(|error| error.code().as_str()),
                page: Some(turn.metadata.clone()),
                screenshot: Some(hash(&turn.screenshot)),
                ..Self::default()
            },
            Ok(_) => Self::default(),
        }
    }

    fn observed(observed: &ObserveResult) -> Self {
        let observation = &observed.observation;
        let error = observed.result.as_ref().and_then(|result| result.as_ref().err());
        Self {
            error: error.map(|error| error.code().as_str()),
            page: observation.metadata.clone(),
            tree: observation.elements.as_ref().map(proto::page::ScreenshotInfo::ac_tree),
            answer: None,
            screenshot: observation.screenshot.as_ref().map(hash),
        }
    }

    /// Describes the first difference.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        if self.error != other.error {
            let name = |error: Option<&'static str>| error.unwrap_or("success");
            return Some(format!("it ended with {} instead of {}", name(other.error), name(self.error)));
        }
        if self.page != other.page {
            let name = |page: &Option<PageMetadata>| match page {
                Some(page) => format!("{:?} at {}", page.title, page.url),
                None => "no page".to_owned(),
            };
            return Some(format!("the page is {} instead of {}", name(&other.page), name(&self.page)));
        }
        let texts =
            [("accessibility tree", &self.tree, &other.tree), ("answer", &self.answer, &other.answer)];
        for (what, expected, found) in texts {
            if expected != found {
                return Some(first_line(what, expected.as_deref(), found.as_deref()));
            }
        }
        (self.screenshot != other.screenshot).then(|| "the screenshot differs".to_owned())
    }
}

/// Names the first line in which two texts differ.
fn first_line(what: &str, expected: Option<&str>, found: Option<&str>) -> String {
    let (mut expected, mut found) = (expected.unwrap_or_default().lines(), found.unwrap_or_default().lines());
    let mut line = 1;
    loop {
        match (expected.next(), found.next()) {
            (Some(expected), Some(found)) if expected == found => line += 1,
            (expected, found) => {
                let quote = |text: Option<&str>| match text {
                    Some(text) => format!("{:?}", proto::text::cut(text)),
                    None => "nothing".to_owned(),
                };
                return format!(
                    "line {line} of the {what} is {} instead of {}",
                    quote(found),
                    quote(expected)
                );
            }
        }
    }
}

fn hash(screenshot: &Screenshot) -> u64 {
    let mut hasher = DefaultHasher::new();
    screenshot.bytes.hash(&mut hasher);
    hasher.finish()
}

/// Compares a repeated operation with the original.
pub(super) fn compare(
    step: usize,
    past: &Past,
    result: &Result<OperationResult, ApiError>,
) -> Result<(), ApiError> {
    match past.shown.difference(&Shown::of(result)) {
        Some(difference) => Err(ApiError::ForkDiffers(format!(
            "step {step} of the lease ({}) had another result in its fork: {difference}",
            past.operation.name()
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(text: &str) -> OperationResult {
        OperationResult::Answer(json!(text))
    }

    #[test]
    fn prefix_ends_with_the_observations_of_its_last_step() {
        let mut history = History::default();
        let observe = ObserveRequest::screenshot(proto::InteractionMode::Coordinates);
        for operation in [
            Operation::Execute(Command::Back),
            Operation::Observe(observe),
            Operation::Probe,
            Operation::Execute(Command::Forward),
            Operation::Observe(observe),
        ] {
            history.add(Begun::of(&operation), &Ok(answer("done")));
        }
        let length = |history: &History, steps| history.prefix(steps).map(|prefix| prefix.len());
        assert_eq!(length(&history, Some(1)).unwrap(), 2);
        assert_eq!(length(&history, None).unwrap(), 4);
        let too_many = length(&history, Some(3)).unwrap_err().to_string();
        assert!(too_many.contains("it has had 2 steps, and the fork wants 3"), "{too_many}");
        history.add(Begun::of(&Operation::DeleteFile("a".into())), &Ok(answer("done")));
        assert!(length(&history, None).unwrap_err().to_string().contains("its files were changed"));
    }

    #[test]
    fn first_difference_is_named() {
        let shown = |text: &str| Shown { tree: Some(text.to_owned()), ..Shown::default() };
        let difference = shown("a\nb\nc").difference(&shown("a\nx")).unwrap();
        assert_eq!(difference, "line 2 of the accessibility tree is \"x\" instead of \"b\"");
        let past =
            Past { operation: Repeatable::Execute(Command::Back), shown: Shown::of(&Ok(answer("one"))) };
        let error = compare(3, &past, &Ok(answer("two"))).unwrap_err();
        assert_eq!(error.code(), proto::ErrorCode::ForkDiffers);
        assert!(error.to_string().contains("step 3 of the lease (back) had another result"), "{error}");
        assert!(compare(3, &past, &Ok(answer("one"))).is_ok());
        let refused = compare(3, &past, &Err(ApiError::InvalidInstance)).unwrap_err().to_string();
        assert!(refused.contains("it ended with invalid_instance instead of success"), "{refused}");
    }
}
