import { describe, expect, it } from 'vitest';
import type { Action, Json } from '../data/types';
import { describe as describeAction, elementText, overlay } from './overlay';

const action = (key: string, args: Record<string, Json> = {}): Action => ({ key, arguments: args, action_string: '' });
const TREE = 'id: 1, text: Home, tag: a\nid: 12, text: a, b, tag: input\nid: 2, text: , tag: button';

describe('overlay', () => {
  it('parses every coordinate format', () => {
    for (const coordinate of [[100, 250], '(100, 250)', { x: 100, y: 250 }, ['100', '250']] as Json[]) {
      expect(overlay(action('click', { coordinates: coordinate }), null).point).toEqual({ x: 100, y: 250 });
    }
  });
  it('reads both names of the arguments', () => {
    expect(overlay(action('click', { coordinate: [100, 250] }), null).point).toEqual({ x: 100, y: 250 });
    for (const name of ['text', 'content']) expect(overlay(action('type', { [name]: 'x' }), null).text).toBe('x');
  });
  it('shows a box and its centre', () => {
    const shown = overlay(action('click', { coordinate: [300, 100, 100, 200] }), null);
    expect(shown.point).toEqual({ x: 200, y: 150 });
    expect(shown.box).toEqual({ left: 100, top: 100, right: 300, bottom: 200 });
  });
  it('clamps coordinates and ignores invalid ones', () => {
    expect(overlay(action('click', { coordinate: [-5, 5000] }), null).point).toEqual({ x: 0, y: 1000 });
    for (const coordinate of [null, [], [1], [1, 2, 3], [1, 2, 3, 4, 5], 'here', {}] as Json[]) {
      expect(overlay(action('click', { coordinate }), null).point).toBeNull();
    }
    expect(overlay(null, null).point).toBeNull();
  });
  it('scrolls at the point or in the middle', () => {
    expect(overlay(action('scroll', { direction: 'up' }), null).scroll).toEqual({ at: { x: 500, y: 500 }, direction: 'up' });
    expect(overlay(action('scroll', { coordinate: [1, 2], direction: 'sideways' }), null).scroll).toEqual({ at: { x: 1, y: 2 }, direction: 'down' });
  });
  it('describes the element from the accessibility tree', () => {
    expect(overlay(action('type', { element_id: 12, text: 'x' }), TREE)).toMatchObject({ element: { id: '12', text: 'a, b, tag: input' }, text: 'x' });
    expect(elementText(TREE, '1')).toBe('Home, tag: a');
    expect(elementText(TREE, '3')).toBe('');
    expect(elementText(null, '1')).toBe('');
  });
  it('describes the action', () => {
    const text = (key: string, args: Record<string, Json> = {}) => describeAction(action(key, args), overlay(action(key, args), TREE));
    expect(text('click', { coordinate: [10.4, 20] })).toBe('click at 10, 20');
    expect(text('click', { element_id: '12' })).toBe('click [12]');
    expect(text('goback')).toBe('go back');
    expect(describeAction(null, overlay(null, null))).toBe('no action recorded');
  });
});
