// Each function requests one permission and resolves to the result.
const asks = {
  notifications: () => Notification.requestPermission(),
  geolocation: () => new Promise((resolve, reject) =>
    navigator.geolocation.getCurrentPosition(() => resolve('granted'), reject)),
  camera: () => navigator.mediaDevices.getUserMedia({ video: true }).then(() => 'granted'),
  microphone: () => navigator.mediaDevices.getUserMedia({ audio: true }).then(() => 'granted'),
  screen: () => navigator.mediaDevices.getDisplayMedia({ video: true }).then(() => 'granted'),
  'clipboard-read': () => navigator.clipboard.readText().then((text) => 'read ' + text.length + ' characters'),
  'clipboard-write': () => navigator.clipboard.writeText('practice').then(() => 'written'),
  midi: () => navigator.requestMIDIAccess({ sysex: true }).then(() => 'granted'),
  'persistent-storage': () => navigator.storage.persist(),
  fullscreen: () => document.documentElement.requestFullscreen().then(() => 'granted'),
  'pointer-lock': () => document.documentElement.requestPointerLock().then(() => 'granted'),
};

async function ask(name) {
  log(name + ': asked');
  try {
    log(name + ': ' + await asks[name]());
  } catch (error) {
    log(name + ': refused (' + (error.message || error.name) + ')');
  }
}
