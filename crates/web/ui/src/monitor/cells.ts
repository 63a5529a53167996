// Decodes the cells of the grid: sixteen bits for stage, outcome and step, and their letters, colours and labels. Pure
// functions; see cells.test.ts. Encoded by crates/web/src/monitor/encoding.rs.

/** The stages in the order of their numbers on the server. */
export const STAGES = [
  { name: 'not_started', letter: 'N', label: 'not started', kind: 'idle' },
  { name: 'allocate', letter: 'W', label: 'waiting for browser', kind: 'waiting' },
  { name: 'navigate', letter: 'n', label: 'navigate', kind: 'browser' },
  { name: 'metadata', letter: 'm', label: 'metadata', kind: 'browser' },
  { name: 'screenshot', letter: 's', label: 'screenshot', kind: 'browser' },
  { name: 'ac_tree', letter: 't', label: 'accessibility tree', kind: 'browser' },
  { name: 'policy', letter: 'a', label: 'policy', kind: 'policy' },
  { name: 'execute', letter: 'e', label: 'execute', kind: 'browser' },
  { name: 'release', letter: 'e', label: 'release', kind: 'browser' },
  { name: 'reward', letter: 'r', label: 'reward', kind: 'judge' },
  { name: 'save', letter: 'r', label: 'save', kind: 'judge' },
  { name: 'finished', letter: 'F', label: 'finished', kind: 'unsolved' },
  { name: 'failed', letter: 'X', label: 'failed', kind: 'lost' },
] as const;

/** The kinds that have different colours, in the order of an episode. */
export const KINDS = ['idle', 'waiting', 'browser', 'policy', 'judge', 'success', 'unsolved', 'lost'] as const;
export type Kind = (typeof KINDS)[number];

export const KIND_LABELS: Record<Kind, { letter: string; label: string; about: string }> = {
  idle: { letter: 'N', label: 'not started', about: 'not started yet' },
  waiting: { letter: 'W', label: 'waiting', about: 'waiting for a browser' },
  browser: { letter: 'n m s t e', label: 'browser', about: 'navigate, metadata, screenshot, accessibility tree, execute' },
  policy: { letter: 'a', label: 'policy', about: 'waiting for the policy’s reply' },
  judge: { letter: 'r', label: 'reward', about: 'being judged and saved' },
  success: { letter: 'F', label: 'success', about: 'finished, task solved' },
  unsolved: { letter: 'F', label: 'unsolved', about: 'finished, not solved or not judged' },
  lost: { letter: 'X', label: 'failed', about: 'lost to an infrastructure failure, cancelled, or not in the replayed archive' },
};

export const OUTCOMES = ['', 'success', 'failure', 'blocked', 'infra_lost', 'judge_error', 'cancelled', 'replay_miss'] as const;
export const OUTCOME_LABELS: Record<string, string> = {
  success: 'success', failure: 'not solved', blocked: 'blocked by the site', infra_lost: 'infrastructure failure',
  judge_error: 'not judged', cancelled: 'cancelled', replay_miss: 'not in the archive',
};

export interface Cell {
  stage: number;
  outcome: string;
  step: number;
}

export const decode = (code: number): Cell => ({ stage: code & 15, outcome: OUTCOMES[(code >> 4) & 7] ?? '', step: code >> 7 });

const SUCCESS = OUTCOMES.indexOf('success');

/** Returns the kind of a cell. Called thousands of times per frame, so it does not decode the whole cell. */
export function kindOf(code: number): Kind {
  const stage = STAGES[code & 15];
  if (!stage) return 'idle';
  return stage.kind === 'unsolved' && ((code >> 4) & 7) === SUCCESS ? 'success' : stage.kind;
}

/** Returns the text in a cell: its letter, with the step number in front while the episode runs. */
export function cellText(code: number): string {
  const stage = STAGES[code & 15] ?? STAGES[0];
  const running = stage.kind === 'browser' || stage.kind === 'policy';
  return running ? `${code >> 7}${stage.letter}` : stage.letter;
}

/** Describes a cell as text, for the caption and for screen readers. */
export function describeCell(code: number): string {
  const { stage, outcome, step } = decode(code);
  const { label, kind } = STAGES[stage] ?? STAGES[0];
  if (kind === 'unsolved' || kind === 'lost') return `${label}${outcome ? `, ${OUTCOME_LABELS[outcome] ?? outcome}` : ''}, ${step} steps`;
  return kind === 'idle' || kind === 'waiting' ? label : `step ${step}, ${label}`;
}

/** Decodes all cells from base64 of little-endian pairs of bytes. */
export function unpack(text: string): Uint16Array {
  const bytes = atob(text);
  const codes = new Uint16Array(bytes.length >> 1);
  for (let position = 0; position < codes.length; position++) {
    codes[position] = bytes.charCodeAt(2 * position) | (bytes.charCodeAt(2 * position + 1) << 8);
  }
  return codes;
}

/** Applies changes to the grid. Positions are given as distances from the previous changed position. */
export function patch(codes: Uint16Array, gaps: number[], to: number[]): void {
  let position = 0;
  gaps.forEach((gap, change) => {
    position += gap;
    if (position < codes.length) codes[position] = to[change] ?? 0;
  });
}

export type Difficulty = 'easy' | 'medium' | 'hard';
export const difficultyOf = (value: number): Difficulty => (value <= 3 ? 'easy' : value <= 6 ? 'medium' : 'hard');
