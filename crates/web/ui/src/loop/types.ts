// What the server sends about a loop. Times are Unix seconds of the server's clock.

export const PHASES = ['serve', 'collect', 'evaluate', 'export', 'train', 'verify', 'switch'] as const;
export type PhaseName = (typeof PHASES)[number];
export type PhaseStatus = 'pending' | 'running' | 'done' | 'skipped' | 'failed';
export type LoopStatus = 'running' | 'stopped' | 'failed' | 'finished';
export type Split = 'train' | 'test';

export interface Phase { phase: PhaseName; status: PhaseStatus; failures: number; started_at: number | null; ended_at: number | null; reason: string | null }
export interface Iteration { number: number; model: string; checkpoint: string | null; rollbacks: number; phases: Phase[] }
export interface Activity { iteration: number; phase: PhaseName; status: PhaseStatus; attempt: number; since: number | null; log: string | null; log_lines: string[] }
export interface Success { split: Split; iteration: number; scored: number; successes: number }
export interface Failure { iteration: number; phase: PhaseName; at: number; reason: string; is_rollback: boolean }
export interface Liveness { state: 'alive' | 'unknown' | 'gone' | 'silent'; host?: string; process?: number }

export interface Loop {
  status: LoopStatus; liveness: Liveness | null; reason: string | null; first_iteration: number; iterations_planned: number;
  iterations: Iteration[]; earlier_iterations: number; activity: Activity | null;
  checkpoint: { path: string; iteration: number; at: number | null } | null; failure: Failure | null;
  dead_ranks: { rank: number; host: string }[]; success: Success[];
}
export interface Snapshot { name: string; save_path: string; has_run_page: boolean; problem: string | null; loop: Loop | null }
export interface Message { now: number; snapshot: Snapshot }
