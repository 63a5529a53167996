// The JSON of the server. See crates/web/src/view.

import type { MatchCounts, NetworkSummary } from '../../common/network';

export type Split = 'train' | 'test';

export interface IterationId {
  split: Split;
  iteration: number;
}

export interface Contents {
  save_path: string;
  iterations: IterationId[];
}

export interface Metrics {
  total_trajectories: number;
  crashed_rate: number;
  blocked_rate: number;
  scored: number;
  success_rate: number;
  avg_steps: number;
}

export interface Overview extends IterationId {
  is_finished: boolean;
  trajectories: number;
  running: number;
  announced: number | null;
  steps: number;
  bytes: number;
  changed: number;
  outcomes: [string, number][];
  overall: Metrics;
  by_difficulty: ({ name: string } & Metrics)[];
  metadata: { solution_model?: string | null; judge_model?: string | null; timestamp?: string | null } | null;
  problems: string[];
  /** How archives answered the requests of replayed episodes. */
  coverage?: { overall: CoverageGroup; by_site: CoverageGroup[] };
}

export type CoverageGroup = { name: string; trajectories: number } & MatchCounts;

export interface Names {
  values: string[];
  rows: number[];
}

export interface Table extends IterationId {
  version: string;
  is_finished: boolean;
  announced: number | null;
  changed: number;
  problems: string[];
  key: string[];
  task: string[];
  task_id: (string | number | null)[];
  outcome: Names;
  domain: Names;
  subdomain: Names;
  website: Names;
  class: Names;
  difficulty: number[];
  reward: number[];
  steps: number[];
  max_steps: number[];
  crashed: boolean[];
}

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface Action {
  key: string;
  arguments: Record<string, Json>;
  action_string: string;
}

export interface Step {
  observation: { image_path: string; ac_tree: string | null; title: string; url: string };
  action: Action | null;
  response: { raw_response: string; answering_tokens: Record<string, Json>; raw_prompt: string };
  reward: { reward: number; is_blocked: boolean; submit: boolean; submission_judgment: string | null };
  same_as_next_screenshot: boolean | null;
  timings_ms: Record<string, Json>;
  is_keypoint: boolean;
  screenshot_problem: string | null;
  prompt_tokens: number | null;
  reply_tokens: number | null;
}

export interface JudgeText {
  about: { kind: 'blocking' | 'support' | 'rubric' | 'reference' | 'other'; item?: number };
  passed: boolean | null;
  text: string;
}

export interface RubricItem {
  description: string;
  difficulty: number;
  passed: boolean | null;
  texts: string[];
}

export interface Trajectory extends IterationId {
  key: string;
  is_running: boolean;
  outcome: string;
  is_outcome_recorded: boolean;
  crash: string | null;
  reward: number;
  answer: string | null;
  class: string;
  task: {
    task_name: string;
    domain: string;
    subdomain: string;
    website: string;
    difficulty: number;
    reference_answer: string | null;
    task_id: string | number | null;
    max_steps: number;
    trajectory_index: number;
  };
  rubric: RubricItem[];
  judgment: JudgeText[];
  steps: Step[];
  /** Whether the episode was recorded. */
  has_recording: boolean;
  /** What was recorded or replayed. */
  network: NetworkSummary | null;
  /** Other fields of the trajectory's metadata, such as `ending`. */
  extra: Record<string, Json>;
}

/** A recording: times are seconds since its start. */
export interface Recording {
  duration: number;
  truncated: boolean;
  /** Time, offset and length of each frame. */
  frames: [number, number, number][];
  /** When the screenshot of each step was taken. */
  steps?: number[];
  console: { time: number; level: string; text: string; url: string; line: number }[];
}

export interface Sibling extends IterationId {
  key: string;
  outcome: string;
  reward: number;
  steps: number;
}

export type LineName = 'overall' | 'easy' | 'medium' | 'hard';

export interface Series {
  split: Split;
  line: LineName;
  iterations: number[];
  /** Positions on the x axis, one for each iteration. */
  x: number[];
  values: (number | null)[];
  smoothed: (number | null)[] | null;
}

export interface Chart {
  measure: string;
  title: string;
  explanation: string;
  unit: 'share' | 'count';
  series: Series[];
}

export type XAxis = 'iterations' | 'trajectories';

export interface Charts {
  ema: number | null;
  x: XAxis;
  /** Whether only test tasks that are out of distribution are included. */
  ood: boolean;
  trajectories: number;
  charts: Chart[];
}
