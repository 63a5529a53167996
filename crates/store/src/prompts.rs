//! The prompts of a trajectory as parts. Each prompt repeats most of the one before it: the instructions, the task and the
//! latest steps. Only the text of new parts is kept, so that a journal grows with what happens and not with its square.

use proto::trajectory::Step;
use serde::{Deserialize, Serialize};

/// Where a message, or a part of its content, follows another one in the JSON of a prompt. Quotes in a text are escaped, so
/// that no text contains it. Joining the parts gives the prompt again wherever it is split.
const SEPARATOR: &[u8] = b",{\"";

/// The prompts of some steps of a trajectory, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompts {
    /// The number of parts of earlier steps, which are stored elsewhere.
    #[serde(default, skip_serializing_if = "is_zero")]
    first_part: u32,
    parts: Vec<String>,
    /// The numbers of the parts of each prompt. A step without a prompt has none.
    steps: Vec<Vec<u32>>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Prompts {
    /// Takes the prompts out of steps.
    pub(crate) fn take_from(steps: &mut [Step]) -> Self {
        let mut prompts = Self::default();
        for step in steps {
            prompts.push(&std::mem::take(&mut step.response.raw_prompt));
        }
        prompts
    }

    /// Adds the prompt of the next step.
    pub fn push(&mut self, prompt: &str) {
        let mut order = Vec::new();
        let mut start = 0;
        let ends = memchr::memmem::find_iter(prompt.as_bytes(), SEPARATOR).chain([prompt.len()]);
        for end in ends {
            let part = &prompt[start..end];
            start = end;
            if part.is_empty() {
                continue;
            }
            // The latest parts are the most likely.
            let known = self.parts.iter().rposition(|known| known == part);
            let number = known.unwrap_or_else(|| {
                self.parts.push(part.to_owned());
                self.parts.len() - 1
            });
            order.push(number as u32);
        }
        self.steps.push(order);
    }

    /// Returns the prompt of a step; `None` if parts are missing.
    pub fn get(&self, step: usize) -> Option<String> {
        let order = self.steps.get(step)?;
        let part = |number: &u32| Some(self.parts.get(*number as usize)?.as_str());
        order.iter().map(part).collect()
    }

    /// Puts the prompts back into the steps, which are the first ones of the trajectory. Returns `None` if parts are missing.
    pub fn restore(&self, steps: &mut [Step]) -> Option<()> {
        for (number, step) in steps.iter_mut().enumerate().take(self.steps.len()) {
            step.response.raw_prompt = self.get(number)?;
        }
        Some(())
    }

    /// Returns the number of steps so far.
    pub const fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Returns the number of parts so far.
    pub const fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Returns the last prompt, with its parts from the number `first_part` on. The others are stored already.
    pub(crate) fn last(&self, first_part: usize) -> PromptsRef<'_> {
        let steps = &self.steps[self.steps.len().saturating_sub(1)..];
        PromptsRef {
            first_part: first_part as u32,
            parts: self.parts.get(first_part..).unwrap_or_default(),
            steps,
        }
    }

    /// Adds what [`Prompts::last`] returned and returns the prompt; `None` if parts before it are missing.
    pub(crate) fn extend_by_last(&mut self, later: Self) -> Option<String> {
        if later.first_part as usize != self.parts.len() {
            return None;
        }
        self.parts.extend(later.parts);
        self.steps.extend(later.steps);
        self.get(self.steps.len().checked_sub(1)?)
    }
}

/// [`Prompts`] with data borrowed from the caller.
#[derive(Serialize)]
pub(crate) struct PromptsRef<'a> {
    #[serde(skip_serializing_if = "is_zero")]
    first_part: u32,
    parts: &'a [String],
    steps: &'a [Vec<u32>],
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn prompt(system: &str, steps: usize) -> String {
        let turn = |number: usize| json!({"role": "user", "content": [{"type": "text", "text": format!("step {number} ,{{\"")}]});
        let messages = [json!({"role": "system", "content": system})].into_iter().chain((0..steps).map(turn));
        messages.collect::<serde_json::Value>().to_string()
    }

    #[test]
    fn repeated_parts_are_kept_once() {
        let system = "Be careful. ".repeat(100);
        let mut prompts = Prompts::default();
        for steps in 0..10 {
            prompts.push(&prompt(&system, steps));
        }
        let text = serde_json::to_string(&prompts).unwrap();
        assert!(text.len() < system.len() + 4000, "{} bytes", text.len());
        let read: Prompts = serde_json::from_str(&text).unwrap();
        for steps in 0..10 {
            assert_eq!(read.get(steps).unwrap(), prompt(&system, steps));
        }
        assert_eq!(read.get(10), None);
    }

    #[test]
    fn prompts_are_read_step_by_step() {
        let (mut written, mut read) = (Prompts::default(), Prompts::default());
        for steps in 0..4 {
            let known = written.parts();
            written.push(&prompt("go", steps));
            let record = serde_json::to_string(&written.last(known)).unwrap();
            let later: Prompts = serde_json::from_str(&record).unwrap();
            // A record that was lost before it is noticed.
            assert_eq!(Prompts::default().extend_by_last(later.clone()).is_some(), steps == 0);
            assert_eq!(read.extend_by_last(later).unwrap(), prompt("go", steps));
        }
        assert_eq!(read, written);
    }

    proptest! {
        #[test]
        fn any_text_is_kept(texts in proptest::collection::vec("(,\\{\"|a|☃|\\[|\\})*", 0..6)) {
            let mut prompts = Prompts::default();
            for text in &texts {
                prompts.push(text);
            }
            for (step, text) in texts.iter().enumerate() {
                prop_assert_eq!(prompts.get(step), Some(text.clone()));
            }
        }
    }
}
