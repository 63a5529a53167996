//! Runs one episode as the collector does: observe, build the conversation, ask the policy, act.

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

/// Lines of the page's text in the prompt.
const MAX_TEXT_LINES: usize = 300;

pub(crate) struct Player {
    instance: Instance,
    page_text: bool,
    prompting: PromptOptions,
    verbose: bool,
}

/// A task and its result.
pub(crate) struct TaskResult {
    pub(crate) task: PracticeTask,
    pub(crate) steps: usize,
    pub(crate) answer: Option<String>,
    pub(crate) error: Option<String>,
}

/// The current state of the browser.
struct Observed {
    observation: Observation,
    screenshot: Vec<u8>,
    text: Option<String>,
}

type Error = Box<dyn std::error::Error>;

impl Player {
    pub(crate) fn new(instance: Instance, page_text: bool, version: PromptVersion, verbose: bool) -> Self {
        let prompting = PromptOptions {
            mode: InteractionMode::SetOfMarks,
            model_type: ModelType::Instruct,
            version,
            include_ac_tree: true,
            window: rollout::policy::HISTORY_WINDOW,
            dialect: None,
        };
        Self { instance, page_text, prompting, verbose }
    }

    pub(crate) async fn close(self) {
        if let Err(error) = self.instance.dispose().await {
            eprintln!("cannot dispose of the browser instance: {error}");
        }
    }

    pub(crate) async fn play(&mut self, task: PracticeTask, max_steps: i64) -> TaskResult {
        let mut history = Vec::new();
        let (answer, error) = match self.episode(&task, max_steps, &mut history).await {
            Ok(answer) => (answer, None),
            Err(error) => (None, Some(error.to_string())),
        };
        TaskResult { task, steps: history.len(), answer, error }
    }

    async fn episode(
        &mut self,
        task: &PracticeTask,
        max_steps: i64,
        history: &mut Vec<Record>,
    ) -> Result<Option<String>, Error> {
        let task = public_task(task, max_steps);
        self.instance.execute(&Command::VisitPage { url: task.website.clone() }).await?;
        let mut current = self.observe().await?;
        let context = ActionContext {
            mode: InteractionMode::SetOfMarks,
            width: 1280,
            height: 768,
            start_url: &task.website,
        };
        for _ in 0..max_steps {
            let text = self.ask(&task, history, &current)?;
            let reply = Reply::parse(&text, InteractionMode::SetOfMarks);
            if let Some(problem) = &reply.problem {
                return Err(format!("invalid reply: {problem}").into());
            }
            let action = ResolvedAction::resolve(&reply.action, &context)?;
            history.push(step_record(&current, &reply, text));
            match action {
                ResolvedAction::Answer(text) => return Ok(Some(text)),
                ResolvedAction::Wait { .. } | ResolvedAction::Commands(_) => {}
                ResolvedAction::Command(command) => {
                    if let Err(error) = self.instance.execute(&command).await {
                        self.log(|| format!("   ! {error}"));
                    }
                }
            }
            let next = self.observe().await?;
            let changed = next.screenshot != current.screenshot;
            if let Some(last) = history.last_mut() {
                let outcome = describe_outcome(Some(changed), &next.observation.url, None);
                last.response.answering_tokens.insert("observation".to_owned(), outcome.into());
                last.same_as_next_screenshot = Some(!changed);
            }
            current = next;
        }
        Ok(None)
    }

    fn log(&self, message: impl Fn() -> String) {
        if self.verbose {
            println!("{}", message());
        }
    }

    async fn observe(&mut self) -> Result<Observed, Error> {
        let mut request = ObserveRequest::screenshot(InteractionMode::SetOfMarks);
        request.metadata = true;
        let observed = self.instance.observe(&request).await?;
        let metadata = observed.metadata.ok_or("no metadata")?;
        let text = if self.page_text {
            let answer = self.instance.execute(&Command::GetWebpageText { n_lines: MAX_TEXT_LINES }).await?;
            answer.get("text").and_then(Value::as_str).map(str::to_owned)
        } else {
            None
        };
        let observation = Observation {
            image_path: String::new(),
            ac_tree: observed.elements.map(|elements| elements.ac_tree()),
            title: metadata.title,
            url: metadata.url,
        };
        let screenshot = observed.screenshot.map(|image| image.bytes.to_vec()).unwrap_or_default();
        Ok(Observed { observation, screenshot, text })
    }

    fn ask(&self, task: &Task, history: &[Record], current: &Observed) -> Result<String, Error> {
        let page_text = current.text.as_deref();
        let messages = build_conversation(self.prompting, task, history, &current.observation, page_text);
        let request = json!({"model": "baseline", "messages": chat::to_json(&messages, &chat::file_url)});
        let text = baseline::reply(&request)?;
        self.log(|| {
            format!(
                "   {} {}\n{}\n{}",
                current.observation.title,
                current.observation.url,
                if history.is_empty() { task.task_name.as_str() } else { "" },
                text.replace("\n<tool_call>\n", " ").replace("\n</tool_call>", "")
            )
        });
        Ok(text)
    }
}

fn step_record(current: &Observed, reply: &Reply, text: String) -> Record {
    Record {
        observation: current.observation.clone(),
        action: Some(reply.action.clone()),
        response: Response {
            raw_response: text,
            answering_tokens: reply.answering_tokens(),
            raw_prompt: String::new(),
        },
        reward: Reward::default(),
        same_as_next_screenshot: None,
        extras: StepExtras::default(),
    }
}

/// Returns the task as the policy gets it, without its answer.
fn public_task(task: &PracticeTask, max_steps: i64) -> Task {
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
