//! Values that have the right type and still make no sense. Each rule names its key.

use super::schema::{
    Config, EnvConfig, MaxSteps, OpenaiConfig, PolicyConfig, RatioClass, SamplerKind, Split,
};

/// What is wrong, as (key, reason); all of it, not only the first.
pub(super) fn problems(config: &Config) -> Vec<(String, String)> {
    let mut rules = Rules::default();
    policy(&mut rules, &config.policy_config);
    environment(&mut rules, &config.env_config);
    openai(&mut rules, &config.openai_config);
    rules.0
}

#[derive(Default)]
struct Rules(Vec<(String, String)>);

impl Rules {
    fn check(&mut self, key: &str, holds: bool, reason: impl Into<String>) {
        if !holds {
            self.0.push((key.to_owned(), reason.into()));
        }
    }

    fn at_least_one(&mut self, key: &str, number: usize) {
        self.check(key, number >= 1, format!("must be at least 1, not {number}"));
    }

    fn positive(&mut self, key: &str, number: f64) {
        self.check(key, number.is_finite() && number > 0.0, format!("must be more than 0, not {number}"));
    }

    fn address(&mut self, key: &str, text: &str) {
        let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        let holds =
            host.is_some_and(|host| !host.is_empty() && !host.starts_with('/') && !host.contains(' '));
        self.check(key, holds, "must be an address that starts with http:// or https://");
    }

    /// The value may be a secret pasted into the wrong place, so it is never repeated.
    fn variable(&mut self, key: &str, name: &str) {
        let holds = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        self.check(key, holds, "must be the name of an environment variable, never the secret itself");
    }
}

fn policy(rules: &mut Rules, policy: &PolicyConfig) {
    let key = |name: &str| format!("policy_config.{name}");
    rules.at_least_one(&key("max_new_tokens"), policy.max_new_tokens as usize);
    let t = policy.temperature;
    rules.check(&key("temperature"), t.is_finite() && t >= 0.0, format!("must be 0 or more, not {t}"));
    let p = policy.top_p;
    rules.check(&key("top_p"), p > 0.0 && p <= 1.0, format!("must be above 0 and at most 1, not {p}"));
    rules.check(&key("top_k"), policy.top_k >= -1, "must be -1, 0 (no limit) or more");
    let p = policy.min_p;
    rules.check(&key("min_p"), (0.0..=1.0).contains(&p), format!("must be between 0 and 1, not {p}"));
}

fn environment(rules: &mut Rules, env: &EnvConfig) {
    let key = |name: &str| format!("env_config.{name}");
    let pools = &env.http_pools;
    let counts = [
        ("server_size", env.server_size),
        ("max_vllm_sessions", env.max_vllm_sessions),
        ("evaluation_workers", env.evaluation_workers),
        ("screenshot_comparison_workers", env.screenshot_comparison_workers),
        ("instance_lifetime_max", env.instance_lifetime_max as usize),
        ("master_port", env.master_port as usize),
        ("http_pools.metadata", pools.metadata),
        ("http_pools.navigate", pools.navigate),
        ("http_pools.allocate", pools.allocate),
        ("http_pools.release", pools.release),
        ("http_pools.screenshot", pools.screenshot),
        ("http_pools.ac_tree", pools.ac_tree),
        ("http_pools.page_metadata", pools.page_metadata),
        ("http_pools.execute", pools.execute),
    ];
    for (name, count) in counts {
        rules.at_least_one(&key(name), count);
    }
    let times = [
        ("wait_timeout", env.wait_timeout),
        ("operation_timeout", env.operation_timeout),
        ("vllm_timeout", env.vllm_timeout),
        ("task_timeout_minutes", env.task_timeout_minutes),
        ("work_queue_stale_after", env.work_queue_stale_after),
    ];
    for (name, seconds) in times {
        rules.positive(&key(name), seconds);
    }
    let share = env.completion_threshold;
    let reason = format!("must be above 0 and at most 1, not {share}");
    rules.check(&key("completion_threshold"), share > 0.0 && share <= 1.0, reason);
    let grace = env.completion_grace_period;
    let reason = format!("must be 0 or more, not {grace}");
    rules.check(&key("completion_grace_period"), grace.is_finite() && grace >= 0.0, reason);
    let wait = env.merge_wait_minutes;
    let reason = format!("must be 0 or more, not {wait}");
    rules.check(&key("merge_wait_minutes"), wait.is_finite() && wait >= 0.0, reason);
    let queue =
        env.work_queue.as_deref().is_none_or(|address| net::redis::RedisConnection::to(address).is_ok());
    rules.check(
        &key("work_queue"),
        queue,
        "must be an address like redis://127.0.0.1:6379 or rediss://host:6380",
    );
    let percent = env.save_every_percent;
    let reason = format!("must be above 0 and at most 100, not {percent}");
    rules.check(&key("save_every_percent"), percent > 0.0 && percent <= 100.0, reason);
    rules.address(&key("vllm_server_url"), &env.vllm_server_url);
    rules.variable(&key("cpu_cluster_token_env_var"), &env.cpu_cluster_token_env_var);
    let host_like = |host: &str| {
        !host.is_empty()
            && host
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']'))
    };
    rules.check(
        &key("host_ip"),
        env.host_ip.as_deref().is_none_or(host_like),
        "must be a host name or an address without scheme, port or path",
    );
    tasks(rules, env);
    ranks(rules, env);
}

fn tasks(rules: &mut Rules, env: &EnvConfig) {
    let key = |name: &str| format!("env_config.{name}");
    if env.split == Split::Train {
        let size = env.train_tasks_rollout_size;
        let reason = format!("must be at least 1 for the train split, not {size}");
        rules.check(&key("train_tasks_rollout_size"), size >= 1, reason);
    }
    let steps = [("train", env.train_difficulty_max_steps), ("test", env.test_difficulty_max_steps)];
    for (split, MaxSteps { easy, medium, hard }) in steps {
        for (class, steps) in [("easy", easy), ("medium", medium), ("hard", hard)] {
            rules.at_least_one(&key(&format!("{split}_difficulty_max_steps.{class}")), steps as usize);
        }
    }
    for (name, RatioClass { range: [low, high], weight }) in &env.difficulty_ratio {
        let key = |part: &str| key(&format!("difficulty_ratio.{name}.{part}"));
        let reason = format!("must run from 1 or more up to at least that, not {low} to {high}");
        rules.check(&key("range"), *low >= 1 && low <= high, reason);
        rules.check(&key("weight"), weight.is_finite() && *weight >= 0.0, "must be 0 or more");
    }
    if env.train_tasks_sampler == SamplerKind::Ratio {
        let total: f64 = env.difficulty_ratio.values().map(|class| class.weight).sum();
        rules.check(
            &key("difficulty_ratio"),
            total > 0.0,
            "the ratio sampler needs classes with weights above 0",
        );
    }
}

fn ranks(rules: &mut Rules, env: &EnvConfig) {
    let key = |name: &str| format!("env_config.{name}");
    let pairs = [
        ("multinode_rank", env.multinode_rank, "multinode_total_workers", env.multinode_total_workers),
        ("test_rank", env.test_rank, "test_total_workers", env.test_total_workers),
    ];
    for (rank_key, rank, total_key, total) in pairs {
        rules.check(&key(total_key), total != Some(0), "must be at least 1");
        if let (Some(rank), Some(total)) = (rank, total) {
            let reason =
                format!("ranks count from 0 and stay below {total_key} = {total}, so {rank} is none");
            rules.check(&key(rank_key), rank < total, reason);
        }
    }
    if let Err((name, reason)) = crate::plan::ranks::Ranks::from_config(env) {
        // How many there are may still be said by whatever started this process.
        rules.check(&key(name), name == "multinode_total_workers", reason);
    }
}

fn openai(rules: &mut Rules, openai: &OpenaiConfig) {
    rules.address("openai_config.base_url", &openai.base_url);
    rules.variable("openai_config.openai_api_key_env_var", &openai.openai_api_key_env_var);
    let overrides = [
        ("keypoint_detection", &openai.keypoint_detection),
        ("blocking_detection", &openai.blocking_detection),
        ("evaluation", &openai.evaluation),
    ];
    for (name, given) in overrides {
        if let Some(address) = &given.base_url {
            rules.address(&format!("openai_config.{name}.base_url"), address);
        }
        if let Some(variable) = &given.openai_api_key_env_var {
            rules.variable(&format!("openai_config.{name}.openai_api_key_env_var"), variable);
        }
    }
}
