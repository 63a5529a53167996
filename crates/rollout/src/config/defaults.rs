//! The default of every key.

use indexmap::IndexMap;
use proto::{InteractionMode, SessionOptions};
use serde_json::Value;

use super::network::NetworkSource;
use super::schema::{
    Config, ContextConfig, EnvConfig, HttpPools, ImageTransport, JudgeKind, JudgeOverride, MaxSteps,
    ModelConfig, ModelType, OpenaiConfig, PolicyConfig, ProgramConfig, PromptVersion, SamplerKind,
    ScreenshotFormat, Split,
};

impl Default for Config {
    fn default() -> Self {
        Self {
            save_path: None,
            data_path: None,
            judge: JudgeKind::Auto,
            seed: None,
            model_config: ModelConfig {
                model_type: ModelType::Instruct,
                prompt_version: PromptVersion::Complete,
            },
            policy_config: PolicyConfig::default(),
            context_config: ContextConfig {
                interaction_mode: InteractionMode::Coordinates,
                include_ac_tree: true,
                page_text_lines: 0,
            },
            env_config: EnvConfig::default(),
            program_config: ProgramConfig { command: None, timeout: 60.0, allow_task_commands: false },
            openai_config: OpenaiConfig::default(),
        }
    }
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self {
            base_model: None,
            checkpoint_path: Some("model.pt".into()),
            max_new_tokens: 3072,
            temperature: 1.0,
            top_p: 0.99,
            top_k: 2,
            min_p: 0.0,
            api_key_env_var: "VLLM_API_KEY".into(),
            prompt_template: None,
            dialect: None,
            dialect_version: None,
            version: None,
            huggingface_token_env_var: Some("HF_TOKEN".into()),
        }
    }
}

impl Default for HttpPools {
    fn default() -> Self {
        Self {
            metadata: 128,
            navigate: 128,
            allocate: 4,
            release: 4,
            screenshot: 128,
            ac_tree: 128,
            page_metadata: 128,
            execute: 128,
        }
    }
}

impl HttpPools {
    /// Replaces the sizes that are 0 by their defaults.
    pub(crate) fn or_default(self) -> Self {
        let default = Self::default();
        let size = |size: usize, default: usize| if size == 0 { default } else { size };
        Self {
            metadata: size(self.metadata, default.metadata),
            navigate: size(self.navigate, default.navigate),
            allocate: size(self.allocate, default.allocate),
            release: size(self.release, default.release),
            screenshot: size(self.screenshot, default.screenshot),
            ac_tree: size(self.ac_tree, default.ac_tree),
            page_metadata: size(self.page_metadata, default.page_metadata),
            execute: size(self.execute, default.execute),
        }
    }
}

impl Default for EnvConfig {
    fn default() -> Self {
        Self {
            split: Split::Train,
            host_ip: None,
            master_port: 7000,
            cpu_cluster_token_env_var: "CPU_CLUSTER_TOKEN".into(),
            vllm_server_url: "http://localhost:8999".into(),
            image_transport: ImageTransport::Auto,
            screenshot_format: ScreenshotFormat::Png,
            session: SessionOptions::names().map(|name| (name.to_owned(), Value::Null)).collect(),
            server_size: 64,
            max_vllm_sessions: 64,
            http_pools: HttpPools::default(),
            wait_timeout: 2400.0,
            operation_timeout: 120.0,
            max_retries: 2,
            vllm_timeout: 240.0,
            max_infra_retries: 3,
            evaluation_workers: 16,
            screenshot_comparison_workers: 32,
            instance_lifetime_max: 50,
            task_timeout_minutes: 20.0,
            completion_threshold: 0.98,
            completion_grace_period: 120.0,
            train_tasks: Some("train.jsonl".into()),
            test_tasks: Some("test.jsonl".into()),
            skip_bad_tasks: false,
            train_tasks_rollout_size: 1024,
            group_size: 1,
            group_from_step: None,
            test_tasks_rollout_size: -1,
            test_tasks_repeat_times: 1,
            train_tasks_sampler: SamplerKind::Uniform,
            difficulty_ratio: IndexMap::new(),
            deduplicate_across_iterations: false,
            train_difficulty_max_steps: MaxSteps::TRAIN,
            test_difficulty_max_steps: MaxSteps::TEST,
            save_traj_progress: true,
            save_every_percent: 25.0,
            resume_checkpoint_path: None,
            first_iteration: 0,
            multinode_rank: None,
            multinode_total_workers: None,
            rank_load_weight: None,
            total_load_weight: None,
            all_rank_weights: None,
            multinode_rank_suffix: None,
            test_rank: None,
            test_total_workers: None,
            work_queue: None,
            work_queue_stale_after: 60.0,
            merge_wait_minutes: 60.0,
            launch_id: None,
            max_staleness: None,
            stream_batch: None,
            stream_linger: 300.0,
            record: false,
            record_network: None,
            network: NetworkSource::Live,
            archive: None,
            on_miss: None,
            monitor_port: Some(5000),
            verbose: false,
            use_rich_actree: false,
        }
    }
}

impl Default for OpenaiConfig {
    fn default() -> Self {
        Self {
            model: "gpt-4o-mini".into(),
            openai_api_key_env_var: "OPENAI_API_KEY".into(),
            base_url: None,
            temperature: None,
            top_p: None,
            max_tokens: None,
            image_detail: None,
            prompt_templates: None,
            keypoint_detection: JudgeOverride::default(),
            blocking_detection: JudgeOverride::default(),
            evaluation: JudgeOverride::default(),
        }
    }
}
