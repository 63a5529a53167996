import { useEffect, useState } from 'preact/hooks';
import { UntrustedText } from '../../common/UntrustedText';
import { recordingFile, recordingFrame, recordingOf, useLoaded } from '../data/api';
import type { TrajectoryId } from '../data/route';
import type { Recording } from '../data/types';
import { ErrorNotice, Loading } from '../Notice';
import { frameAt, messagesAt, stepAt } from './playback';

const SPEEDS = [1, 2, 4, 8];
const MAX_MESSAGES = 50;
const PRELOADED = 3;
const FILES: [string, string][] = [
  ['recording.mjpeg', 'Frames (MJPEG)'], ['recording.json', 'Index'], ['console.jsonl', 'Console (JSONL)'], ['network.har', 'Network (HAR)'],
];

const clock = (seconds: number): string => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`;

/** Plays the recording of an episode. Choosing a step moves it to the time of that step. */
export function RecordingPlayer({ id, step }: { id: TrajectoryId; step: number }) {
  const { value, error } = useLoaded(`recording ${id.split}/${id.iteration}/${id.key}`, (signal) => recordingOf(id, signal));
  return (
    <section class="card recording" aria-labelledby="recording-title">
      <h2 id="recording-title">Recording</h2>
      {error && <ErrorNotice text={error} />}
      {!value && !error && <Loading what="the recording" />}
      {value && (value.frames.length === 0 ? <p class="muted">It has no frames.</p> : <Player id={id} recording={value} step={step} />)}
    </section>
  );
}

/** Advances the time while playing, and stops at the end. */
function usePlayback(duration: number, start: number) {
  const [time, setTime] = useState(start);
  const [isPlaying, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(2);
  useEffect(() => {
    if (!isPlaying) return;
    let last = performance.now();
    const timer = setInterval(() => {
      const now = performance.now();
      const passed = ((now - last) / 1000) * speed;
      last = now;
      setTime((before) => Math.min(duration, before + passed));
    }, 50);
    return () => clearInterval(timer);
  }, [isPlaying, speed, duration]);
  useEffect(() => { if (time >= duration) setPlaying(false); }, [time, duration]);
  const toggle = () => {
    if (!isPlaying && time >= duration) setTime(0);
    setPlaying(!isPlaying);
  };
  return { time, setTime, isPlaying, setPlaying, toggle, speed, setSpeed };
}

function Player({ id, recording, step }: { id: TrajectoryId; recording: Recording; step: number }) {
  const steps = recording.steps ?? [];
  const playback = usePlayback(recording.duration, steps[step] ?? 0);
  const { time, isPlaying } = playback;
  const frame = frameAt(recording.frames, time);
  useEffect(() => {
    const start = steps[step];
    if (start === undefined) return;
    playback.setPlaying(false);
    playback.setTime(start);
  }, [step]);
  useEffect(() => {
    for (let next = frame + 1; next <= frame + PRELOADED && next < recording.frames.length; next += 1) new Image().src = recordingFrame(id, next);
  }, [frame]);
  const shownStep = stepAt(steps, time);
  const messages = messagesAt(recording.console, time, MAX_MESSAGES);
  return (
    <>
      <div class="recording-body">
        <img class="recording-frame" src={recordingFrame(id, frame)} alt={`The page after ${clock(time)}`} />
        <div class="recording-console">
          <h3>Console</h3>
          {messages.length === 0 && <p class="muted small">No messages so far.</p>}
          <ol tabIndex={0} aria-label="Console messages">
            {messages.map((message, number) => <li key={number} class={message.level}><UntrustedText text={message.text} class="mono" /></li>)}
          </ol>
        </div>
      </div>
      <div class="recording-controls">
        <button type="button" onClick={playback.toggle}>{isPlaying ? 'Pause' : 'Play'}</button>
        <input type="range" min={0} max={recording.duration} step={0.05} value={time} aria-label="Time" aria-valuetext={clock(time)}
          onInput={(event) => playback.setTime(Number(event.currentTarget.value))} />
        <span class="number small">{clock(time)} / {clock(recording.duration)}{shownStep !== null && `, step ${shownStep + 1}`}</span>
        <select aria-label="Speed" value={String(playback.speed)} onChange={(event) => playback.setSpeed(Number(event.currentTarget.value))}>
          {SPEEDS.map((speed) => <option key={speed} value={String(speed)}>{speed}×</option>)}
        </select>
      </div>
      <p class="small muted">
        {recording.truncated && 'The recording reached its limit; later frames are missing. '}
        {FILES.map(([file, title]) => <a key={file} href={recordingFile(id, file)} download={file}>{title}</a>)}
      </p>
    </>
  );
}
