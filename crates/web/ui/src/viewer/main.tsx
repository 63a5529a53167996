import { render } from 'preact';
import '../common/theme.css';
import './viewer.css';
import { App } from './App';

const root = document.getElementById('app');
if (root) render(<App />, root);
