import { describe, expect, it } from 'vitest';
import type { Action, Json } from '../data/types';
import { elementText, overlay, sentence } from './overlay';

const action = (key: string, args: Record<string, Json> = {}): Action => ({ key, arguments: args, action_string: '' });
const TREE = 'id: 1, text: Home, tag: a\nid: 12, text: a, b, tag: input\nid: 2, text: , tag: button';

describe('overlay', () => {
  it('finds the point however it was written', () => {
    for (const coordinate of [[100, 250], '(100, 250)', { x: 100, y: 250 }, ['100', '250']] as Json[]) {
      expect(overlay(action('click', { coordinate }), null).point).toEqual({ x: 100, y: 250 });
    }
  });
  it('takes the centre of a box and shows the box', () => {
    const shown = overlay(action('click', { coordinate: [300, 100, 100, 200] }), null);
    expect(shown.point).toEqual({ x: 200, y: 150 });
    expect(shown.box).toEqual({ left: 100, top: 100, right: 300, bottom: 200 });
  });
  it('keeps what is outside on the edge, and draws nothing of rubbish', () => {
    expect(overlay(action('click', { coordinate: [-5, 5000] }), null).point).toEqual({ x: 0, y: 1000 });
    for (const coordinate of [null, [], [1], [1, 2, 3], [1, 2, 3, 4, 5], 'here', {}] as Json[]) {
      expect(overlay(action('click', { coordinate }), null).point).toBeNull();
    }
    expect(overlay(null, null).point).toBeNull();
  });
  it('scrolls at the point, else in the middle', () => {
    expect(overlay(action('scroll', { direction: 'up' }), null).scroll).toEqual({ at: { x: 500, y: 500 }, direction: 'up' });
    expect(overlay(action('scroll', { coordinate: [1, 2], direction: 'sideways' }), null).scroll).toEqual({ at: { x: 1, y: 2 }, direction: 'down' });
  });
  it('names the element by the page\'s own words', () => {
    expect(overlay(action('type', { element_id: 12, text: 'x' }), TREE)).toMatchObject({ element: { id: '12', text: 'a, b, tag: input' }, text: 'x' });
    expect(elementText(TREE, '1')).toBe('Home, tag: a');
    expect(elementText(TREE, '3')).toBe('');
    expect(elementText(null, '1')).toBe('');
  });
  it('says it in words', () => {
    const say = (key: string, args: Record<string, Json> = {}) => sentence(action(key, args), overlay(action(key, args), TREE));
    expect(say('click', { coordinate: [10.4, 20] })).toBe('click at 10, 20');
    expect(say('click', { element_id: '12' })).toBe('click [12]');
    expect(say('goback')).toBe('go back');
    expect(sentence(null, overlay(null, null))).toBe('no action was recorded');
  });
});
