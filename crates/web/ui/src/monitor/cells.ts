// What a cell means: the sixteen bits it travels in, its letter, its kind, and the words for it. Pure; see cells.test.ts.

/** In the order the server counts them. */
export const STAGES = [
  { name: 'not_started', letter: 'N', label: 'not started', kind: 'idle' },
  { name: 'allocate', letter: 'W', label: 'wait for browser', kind: 'waiting' },
  { name: 'navigate', letter: 'n', label: 'navigate', kind: 'browser' },
  { name: 'metadata', letter: 'm', label: 'metadata', kind: 'browser' },
  { name: 'screenshot', letter: 's', label: 'screenshot', kind: 'browser' },
  { name: 'ac_tree', letter: 't', label: 'AC tree', kind: 'browser' },
  { name: 'policy', letter: 'a', label: 'policy', kind: 'policy' },
  { name: 'execute', letter: 'e', label: 'execute', kind: 'browser' },
  { name: 'release', letter: 'e', label: 'release', kind: 'browser' },
  { name: 'reward', letter: 'r', label: 'reward', kind: 'judge' },
  { name: 'save', letter: 'r', label: 'save', kind: 'judge' },
  { name: 'finished', letter: 'F', label: 'finished', kind: 'over' },
  { name: 'failed', letter: 'X', label: 'failed', kind: 'lost' },
] as const;

/** What is told apart by colour, in the order of an episode's life. */
export const KINDS = ['idle', 'waiting', 'browser', 'policy', 'judge', 'success', 'over', 'lost'] as const;
export type Kind = (typeof KINDS)[number];

export const KIND_WORDS: Record<Kind, { letter: string; label: string; about: string }> = {
  idle: { letter: 'N', label: 'not started', about: 'in the queue' },
  waiting: { letter: 'W', label: 'waiting', about: 'waiting for a browser' },
  browser: { letter: 'n m s t e', label: 'browser', about: 'navigate, metadata, screenshot, AC tree, execute' },
  policy: { letter: 'a', label: 'policy', about: 'waiting for the policy’s reply' },
  judge: { letter: 'r', label: 'reward', about: 'being judged and saved' },
  success: { letter: 'F', label: 'success', about: 'finished, task solved' },
  over: { letter: 'F', label: 'unsolved', about: 'finished, not solved or not judged' },
  lost: { letter: 'X', label: 'failed', about: 'lost to infrastructure or cancelled' },
};

export const OUTCOMES = ['', 'success', 'failure', 'blocked', 'infra_lost', 'judge_error', 'cancelled'] as const;
export const OUTCOME_WORDS: Record<string, string> = {
  success: 'success', failure: 'not solved', blocked: 'blocked by the site', infra_lost: 'lost to infrastructure',
  judge_error: 'not judged', cancelled: 'cancelled',
};

export interface Cell {
  stage: number;
  outcome: string;
  step: number;
}

export const decode = (code: number): Cell => ({ stage: code & 15, outcome: OUTCOMES[(code >> 4) & 7] ?? '', step: code >> 7 });

const SUCCESS = OUTCOMES.indexOf('success');

/** The kind of every possible code, looked up thousands of times a frame. */
export function kindOf(code: number): Kind {
  const stage = STAGES[code & 15];
  if (!stage) return 'idle';
  return stage.kind === 'over' && ((code >> 4) & 7) === SUCCESS ? 'success' : stage.kind;
}

/** What a cell shows: its letter, and the step's number while it runs. */
export function textOf(code: number): string {
  const stage = STAGES[code & 15] ?? STAGES[0];
  const running = stage.kind === 'browser' || stage.kind === 'policy';
  return running ? `${code >> 7}${stage.letter}` : stage.letter;
}

/** A cell in words, for those who do not see it. */
export function wordsOf(code: number): string {
  const { stage, outcome, step } = decode(code);
  const { label, kind } = STAGES[stage] ?? STAGES[0];
  if (kind === 'over' || kind === 'lost') return `${label}${outcome ? `, ${OUTCOME_WORDS[outcome] ?? outcome}` : ''}, ${step} steps`;
  return kind === 'idle' || kind === 'waiting' ? label : `step ${step}, ${label}`;
}

/** All cells from the text they travel in: two bytes each, little-endian, base64. */
export function unpack(text: string): Uint16Array {
  const bytes = atob(text);
  const codes = new Uint16Array(bytes.length >> 1);
  for (let place = 0; place < codes.length; place++) {
    codes[place] = bytes.charCodeAt(2 * place) | (bytes.charCodeAt(2 * place + 1) << 8);
  }
  return codes;
}

/** Puts changes into the grid: places come as gaps from the one before. */
export function patch(codes: Uint16Array, gaps: number[], to: number[]): void {
  let place = 0;
  gaps.forEach((gap, change) => {
    place += gap;
    if (place < codes.length) codes[place] = to[change] ?? 0;
  });
}

export type Difficulty = 'easy' | 'medium' | 'hard';
export const difficultyOf = (value: number): Difficulty => (value <= 3 ? 'easy' : value <= 6 ? 'medium' : 'hard');
