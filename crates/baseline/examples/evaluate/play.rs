//! One episode, as the collector plays it: observe, build the conversation, ask the policy, act.

use browser::{Instance, ObserveRequest};
use client::chat;
use practice::PracticeTask;
use proto::{
    Command, InteractionMode,
    trajectory::{Observation, Response, Reward, Step as Record, StepExtras, Task},
};
use rollout::{
    config::{ModelType, PromptVersion},
    policy::{ActionContext, PromptOptions, Reply, ResolvedAction, build_conversation, describe_outcome},
};
use serde_json::{Value, json};

/// Lines of the page's text that the prompt gets.
const TEXT_LINES: usize = 300;

pub(crate) struct Player {
    instance: Instance,
    page_text: bool,
    prompting: PromptOptions,
    verbose: bool,
}

/// A task and what came of it.
pub(crate) struct Played {
    pub(crate) task: PracticeTask,
    pub(crate) steps: usize,
    pub(crate) answer: Option<String>,
    pub(crate) problem: Option<String>,
}

/// What the browser shows.
struct Seen {
    observation: Observation,
    picture: Vec<u8>,
    text: Option<String>,
}

type Trouble = Box<dyn std::error::Error>;

impl Player {
    pub(crate) fn new(instance: Instance, page_text: bool, version: PromptVersion, verbose: bool) -> Self {
        let prompting = PromptOptions {
            mode: InteractionMode::SetOfMarks,
            model_type: ModelType::Instruct,
            version,
            include_ac_tree: true,
        };
        Self { instance, page_text, prompting, verbose }
    }

    pub(crate) async fn leave(self) {
        if let Err(error) = self.instance.dispose().await {
            eprintln!("the instance was not disposed of: {error}");
        }
    }

    pub(crate) async fn play(&mut self, task: PracticeTask, max_steps: i64) -> Played {
        let mut history = Vec::new();
        let (answer, problem) = match self.episode(&task, max_steps, &mut history).await {
            Ok(answer) => (answer, None),
            Err(problem) => (None, Some(problem.to_string())),
        };
        Played { task, steps: history.len(), answer, problem }
    }

    async fn episode(
        &mut self,
        task: &PracticeTask,
        max_steps: i64,
        history: &mut Vec<Record>,
    ) -> Result<Option<String>, Trouble> {
        let task = given(task, max_steps);
        self.instance.execute(&Command::VisitPage { url: task.website.clone() }).await?;
        let mut seen = self.look().await?;
        let context = ActionContext {
            mode: InteractionMode::SetOfMarks,
            width: 1280,
            height: 768,
            start_url: &task.website,
        };
        for _ in 0..max_steps {
            let said = self.ask(&task, history, &seen)?;
            let reply = Reply::parse(&said, InteractionMode::SetOfMarks);
            if let Some(problem) = &reply.problem {
                return Err(format!("unusable reply: {problem}").into());
            }
            let todo = ResolvedAction::resolve(&reply.action, &context)?;
            history.push(record(&seen, &reply, said));
            match todo {
                ResolvedAction::Answer(text) => return Ok(Some(text)),
                ResolvedAction::Wait { .. } => {}
                ResolvedAction::Command(command) => {
                    if let Err(error) = self.instance.execute(&command).await {
                        self.say(|| format!("   ! {error}"));
                    }
                }
            }
            let next = self.look().await?;
            let changed = next.picture != seen.picture;
            if let Some(last) = history.last_mut() {
                let words = describe_outcome(Some(changed), &next.observation.url, None);
                last.response.answering_tokens.insert("observation".to_owned(), words.into());
                last.same_as_next_screenshot = Some(!changed);
            }
            seen = next;
        }
        Ok(None)
    }

    fn say(&self, words: impl Fn() -> String) {
        if self.verbose {
            println!("{}", words());
        }
    }

    async fn look(&mut self) -> Result<Seen, Trouble> {
        let mut request = ObserveRequest::screenshot(InteractionMode::SetOfMarks);
        request.metadata = true;
        let seen = self.instance.observe(&request).await?;
        let metadata = seen.metadata.ok_or("no metadata")?;
        let text = if self.page_text {
            let answer = self.instance.execute(&Command::GetWebpageText { n_lines: TEXT_LINES }).await?;
            answer.get("text").and_then(Value::as_str).map(str::to_owned)
        } else {
            None
        };
        let observation = Observation {
            image_path: String::new(),
            ac_tree: seen.elements.map(|elements| elements.ac_tree()),
            title: metadata.title,
            url: metadata.url,
        };
        let picture = seen.screenshot.map(|screenshot| screenshot.bytes.to_vec()).unwrap_or_default();
        Ok(Seen { observation, picture, text })
    }

    fn ask(&self, task: &Task, history: &[Record], seen: &Seen) -> Result<String, Trouble> {
        let text = seen.text.as_deref();
        let messages = build_conversation(self.prompting, task, history, &seen.observation, text);
        let request = json!({"model": "baseline", "messages": chat::to_json(&messages, &chat::file_url)});
        let said = baseline::reply(&request)?;
        self.say(|| {
            format!(
                "   {} {}\n{}\n{}",
                seen.observation.title,
                seen.observation.url,
                if history.is_empty() { task.task_name.as_str() } else { "" },
                said.replace("\n<tool_call>\n", " ").replace("\n</tool_call>", "")
            )
        });
        Ok(said)
    }
}

fn record(seen: &Seen, reply: &Reply, said: String) -> Record {
    Record {
        observation: seen.observation.clone(),
        action: Some(reply.action.clone()),
        response: Response {
            raw_response: said,
            answering_tokens: reply.answering_tokens(),
            raw_prompt: String::new(),
        },
        reward: Reward::default(),
        same_as_next_screenshot: None,
        extras: StepExtras::default(),
    }
}

/// The task as the agent gets it: its words and its start page, not its answer.
fn given(task: &PracticeTask, max_steps: i64) -> Task {
    Task {
        task_name: task.task_name.clone(),
        domain: task.domain.clone(),
        subdomain: task.subdomain.clone(),
        website: task.website.clone(),
        difficulty: task.difficulty,
        evaluator_reference: Vec::new(),
        reference_answer: None,
        attempt_level: 0,
        task_id: None,
        max_steps,
        trajectory_index: 0,
        extra: serde_json::Map::new(),
    }
}
