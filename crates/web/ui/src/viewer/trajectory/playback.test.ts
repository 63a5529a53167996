import { expect, test } from 'vitest';
import { frameAt, messagesAt, stepAt } from './playback';

test('the frame is the last one before the time', () => {
  const frames: [number, number, number][] = [[0.5, 0, 1], [2, 1, 1], [2.5, 2, 1]];
  expect([0, 0.5, 1.9, 2, 9].map((time) => frameAt(frames, time))).toEqual([0, 0, 0, 1, 2]);
  expect(frameAt([], 3)).toBe(0);
});

test('messages and steps follow the time', () => {
  const messages = [1, 2, 3].map((time) => ({ time, level: 'info', text: String(time), url: '', line: 0 }));
  expect(messagesAt(messages, 2.5, 1).map((message) => message.text)).toEqual(['2']);
  expect([0, 1, 4].map((time) => stepAt([1, 3], time))).toEqual([null, 0, 1]);
});
