//! Rules for values that have the right type. Each rule names its key.

use proto::{InteractionMode, dialect::Version};

use crate::session_options;

use super::network::NetworkSource;
use super::schema::{
    Config, EnvConfig, JudgeOverride, MaxSteps, OpenaiConfig, PolicyConfig, ProgramConfig, RatioClass,
    SamplerKind, Split,
};

/// Returns all problems as (key, reason).
pub(super) fn problems(config: &Config) -> Vec<(String, String)> {
    let mut rules = Rules::default();
    policy(&mut rules, &config.policy_config);
    dialect(&mut rules, config);
    let env = &config.env_config;
    env_counts(&mut rules, env);
    env_numbers(&mut rules, env);
    env_addresses(&mut rules, env);
    env_session(&mut rules, env);
    for (key, reason) in config.network_problems() {
        rules.check(&env_key(key), false, reason);
    }
    env_tasks(&mut rules, env);
    env_groups(&mut rules, env);
    env_ranks(&mut rules, env);
    env_stream(&mut rules, env);
    program(&mut rules, &config.program_config);
    openai(&mut rules, &config.openai_config);
    rules.0
}

#[derive(Default)]
struct Rules(Vec<(String, String)>);

impl Rules {
    fn check(&mut self, key: &str, is_valid: bool, reason: impl Into<String>) {
        if !is_valid {
            self.0.push((key.to_owned(), reason.into()));
        }
    }

    fn at_least_one(&mut self, key: &str, number: usize) {
        self.check(key, number >= 1, format!("must be at least 1, not {number}"));
    }

    fn positive(&mut self, key: &str, number: f64) {
        self.check(key, number.is_finite() && number > 0.0, format!("must be more than 0, not {number}"));
    }

    fn not_negative(&mut self, key: &str, number: f64) {
        self.check(key, number.is_finite() && number >= 0.0, format!("must be 0 or more, not {number}"));
    }

    fn above_zero_up_to(&mut self, key: &str, number: f64, max: f64) {
        let reason = format!("must be above 0 and at most {max}, not {number}");
        self.check(key, number > 0.0 && number <= max, reason);
    }

    fn url(&mut self, key: &str, text: &str) {
        let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        let is_valid =
            host.is_some_and(|host| !host.is_empty() && !host.starts_with('/') && !host.contains(' '));
        self.check(key, is_valid, "must be a URL that starts with http:// or https://");
    }

    /// Checks the name of an environment variable. The message does not repeat the value, which may be a secret that was
    /// pasted here by mistake.
    fn variable(&mut self, key: &str, name: &str) {
        let is_valid = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        self.check(key, is_valid, "must be the name of an environment variable, never the secret itself");
    }
}

fn policy(rules: &mut Rules, policy: &PolicyConfig) {
    let key = |name: &str| format!("policy_config.{name}");
    rules.variable(&key("api_key_env_var"), &policy.api_key_env_var);
    rules.at_least_one(&key("max_new_tokens"), policy.max_new_tokens as usize);
    rules.not_negative(&key("temperature"), policy.temperature);
    rules.above_zero_up_to(&key("top_p"), policy.top_p, 1.0);
    rules.check(&key("top_k"), policy.top_k >= -1, "must be -1, 0 (no limit) or more");
    let p = policy.min_p;
    rules.check(&key("min_p"), (0.0..=1.0).contains(&p), format!("must be between 0 and 1, not {p}"));
}

fn dialect(rules: &mut Rules, config: &Config) {
    let PolicyConfig { dialect, dialect_version, .. } = &config.policy_config;
    let coordinates = config.context_config.interaction_mode == InteractionMode::Coordinates;
    rules.check(
        "policy_config.dialect",
        dialect.is_none() || coordinates,
        "needs context_config.interaction_mode=coordinates: its positions are on screenshots without marks",
    );
    let Some(name) = dialect_version else { return };
    let key = "policy_config.dialect_version";
    match dialect.map(|dialect| dialect.version(name)) {
        None => rules.check(key, false, "needs policy_config.dialect"),
        Some(Err(reason)) => rules.check(key, false, reason),
        Some(Ok(Version::BrowserToolset)) => {
            rules.check(key, false, "the browser toolset is only available through the farm's /computer");
        }
        Some(Ok(_)) => {}
    }
}

fn env_key(name: &str) -> String {
    format!("env_config.{name}")
}

fn env_counts(rules: &mut Rules, env: &EnvConfig) {
    let counts = [
        ("server_size", env.server_size),
        ("max_vllm_sessions", env.max_vllm_sessions),
        ("evaluation_workers", env.evaluation_workers),
        ("screenshot_comparison_workers", env.screenshot_comparison_workers),
        ("instance_lifetime_max", env.instance_lifetime_max as usize),
        ("master_port", env.master_port as usize),
        ("group_size", env.group_size),
    ];
    for (name, count) in counts {
        rules.at_least_one(&env_key(name), count);
    }
}

fn env_numbers(rules: &mut Rules, env: &EnvConfig) {
    let times = [
        ("wait_timeout", env.wait_timeout),
        ("operation_timeout", env.operation_timeout),
        ("vllm_timeout", env.vllm_timeout),
        ("task_timeout_minutes", env.task_timeout_minutes),
        ("work_queue_stale_after", env.work_queue_stale_after),
    ];
    for (name, seconds) in times {
        rules.positive(&env_key(name), seconds);
    }
    rules.not_negative(&env_key("completion_grace_period"), env.completion_grace_period);
    rules.not_negative(&env_key("merge_wait_minutes"), env.merge_wait_minutes);
    rules.above_zero_up_to(&env_key("completion_threshold"), env.completion_threshold, 1.0);
    rules.above_zero_up_to(&env_key("save_every_percent"), env.save_every_percent, 100.0);
}

fn env_session(rules: &mut Rules, env: &EnvConfig) {
    for (name, value) in &env.session {
        let option = [(name.clone(), value.clone())].into_iter().collect();
        if let Err(reason) = session_options::check(&option) {
            // The report of a key repeats the argument that set it, which may hold a secret.
            let may_be_secret = ["proxy", "extra_http_headers"].contains(&name.as_str());
            let key = if may_be_secret { "session".to_owned() } else { format!("session.{name}") };
            rules.check(&env_key(&key), false, reason);
        }
    }
}

fn env_addresses(rules: &mut Rules, env: &EnvConfig) {
    let is_redis = |address: &str| net::redis::RedisConnection::to(address).is_ok();
    rules.check(
        &env_key("work_queue"),
        env.work_queue.as_deref().is_none_or(is_redis),
        "must be an address like redis://127.0.0.1:6379 or rediss://host:6380",
    );
    rules.url(&env_key("vllm_server_url"), &env.vllm_server_url);
    rules.variable(&env_key("cpu_cluster_token_env_var"), &env.cpu_cluster_token_env_var);
    let is_host = |host: &str| {
        let is_allowed =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
        !host.is_empty() && host.chars().all(is_allowed)
    };
    rules.check(
        &env_key("host_ip"),
        env.host_ip.as_deref().is_none_or(is_host),
        "must be a host name or an address without scheme, port or path",
    );
}

fn env_tasks(rules: &mut Rules, env: &EnvConfig) {
    if env.split == Split::Train {
        let size = env.train_tasks_rollout_size;
        let reason = format!("must be at least 1 for the train split, not {size}");
        rules.check(&env_key("train_tasks_rollout_size"), size >= 1, reason);
    }
    let steps = [("train", env.train_difficulty_max_steps), ("test", env.test_difficulty_max_steps)];
    for (split, MaxSteps { easy, medium, hard }) in steps {
        for (class, steps) in [("easy", easy), ("medium", medium), ("hard", hard)] {
            rules.at_least_one(&env_key(&format!("{split}_difficulty_max_steps.{class}")), steps as usize);
        }
    }
    for (name, RatioClass { range: [low, high], weight }) in &env.difficulty_ratio {
        let key = |part: &str| env_key(&format!("difficulty_ratio.{name}.{part}"));
        let reason = format!("must start at 1 or more and not end before its start, not {low} to {high}");
        rules.check(&key("range"), *low >= 1 && low <= high, reason);
        rules.check(&key("weight"), weight.is_finite() && *weight >= 0.0, "must be 0 or more");
    }
    if env.train_tasks_sampler == SamplerKind::Ratio && !env.difficulty_ratio.is_empty() {
        let total: f64 = env.difficulty_ratio.values().map(|class| class.weight).sum();
        rules.check(
            &env_key("difficulty_ratio"),
            total > 0.0,
            "the ratio sampler needs classes with weights above 0",
        );
    }
}

fn env_groups(rules: &mut Rules, env: &EnvConfig) {
    let Some(from_step) = env.group_from_step else { return };
    let key = env_key("group_from_step");
    rules.at_least_one(&key, from_step);
    let MaxSteps { easy, medium, hard } = env.train_difficulty_max_steps;
    let max = easy.max(medium).max(hard) as usize;
    let reason = format!("must be below {max}, the most steps of env_config.train_difficulty_max_steps");
    rules.check(&key, from_step < max, reason);
    rules.check(
        &key,
        env.network == NetworkSource::Replay,
        "needs env_config.network=replay: only a replay shows the same pages again",
    );
    rules.check(
        &key,
        env.split == Split::Train && env.group_size > 1,
        "needs env_config.split=train and env_config.group_size=2 or more: the attempts that share the steps",
    );
    rules.check(
        &key,
        env.work_queue.is_none(),
        "cannot be combined with env_config.work_queue, which gives the attempts of a group to different collectors",
    );
}

fn env_ranks(rules: &mut Rules, env: &EnvConfig) {
    let pairs = [
        ("multinode_rank", env.multinode_rank, "multinode_total_workers", env.multinode_total_workers),
        ("test_rank", env.test_rank, "test_total_workers", env.test_total_workers),
    ];
    for (rank_key, rank, total_key, total) in pairs {
        rules.check(&env_key(total_key), total != Some(0), "must be at least 1");
        if let (Some(rank), Some(total)) = (rank, total) {
            let reason = format!("ranks count from 0 and must be below {total_key} = {total}, not {rank}");
            rules.check(&env_key(rank_key), rank < total, reason);
        }
    }
    if let Err((name, reason)) = crate::plan::ranks::Ranks::from_config(env) {
        // The number of ranks may still come from the launcher.
        rules.check(&env_key(name), name == "multinode_total_workers", reason);
    }
}

fn env_stream(rules: &mut Rules, env: &EnvConfig) {
    rules.not_negative(&env_key("stream_linger"), env.stream_linger);
    if let Some(batch) = env.stream_batch {
        rules.at_least_one(&env_key("stream_batch"), batch);
    }
    rules.check(
        &env_key("max_staleness"),
        env.max_staleness.is_none() || env.stream_batch.is_some(),
        "needs env_config.stream_batch, the number of items that the trainer uses for one weight update",
    );
}

fn program(rules: &mut Rules, program: &ProgramConfig) {
    rules.positive("program_config.timeout", program.timeout);
    let is_program = |command: &Vec<String>| command.first().is_some_and(|program| !program.is_empty());
    rules.check(
        "program_config.command",
        program.command.as_ref().is_none_or(is_program),
        "must be a list: the program and its arguments",
    );
}

fn openai(rules: &mut Rules, openai: &OpenaiConfig) {
    rules.variable("openai_config.openai_api_key_env_var", &openai.openai_api_key_env_var);
    let OpenaiConfig { base_url, temperature, top_p, max_tokens, image_detail, .. } = openai.clone();
    let common =
        JudgeOverride { base_url, temperature, top_p, max_tokens, image_detail, ..JudgeOverride::default() };
    let sections = [
        ("openai_config", &common),
        ("openai_config.keypoint_detection", &openai.keypoint_detection),
        ("openai_config.blocking_detection", &openai.blocking_detection),
        ("openai_config.evaluation", &openai.evaluation),
    ];
    for (section, given) in sections {
        let key = |name: &str| format!("{section}.{name}");
        if let Some(url) = &given.base_url {
            rules.url(&key("base_url"), url);
        }
        if let Some(variable) = &given.openai_api_key_env_var {
            rules.variable(&key("openai_api_key_env_var"), variable);
        }
        if let Some(temperature) = given.temperature {
            rules.not_negative(&key("temperature"), temperature);
        }
        if let Some(top_p) = given.top_p {
            rules.above_zero_up_to(&key("top_p"), top_p, 1.0);
        }
        if let Some(max_tokens) = given.max_tokens {
            rules.at_least_one(&key("max_tokens"), max_tokens as usize);
        }
    }
}
