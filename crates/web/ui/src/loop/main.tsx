import { render } from 'preact';
import '../common/theme.css';
import './loop.css';
import { LoopPage } from './LoopPage';
import { LoopStore } from './store';

const root = document.getElementById('app');
const store = new LoopStore();
store.connect();
if (root) render(<LoopPage store={store} />, root);
