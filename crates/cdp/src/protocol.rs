//! The names of the protocol methods and events in use, each declared once, so that a test can compare the whole list
//! with the protocol description that the browser serves.

use std::fmt;

/// The name of a protocol method. Only this module creates values of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Method(&'static str);

impl Method {
    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

macro_rules! methods {
    ($($constant:ident = $name:literal;)*) => {
        $(pub const $constant: Method = Method($name);)*
        /// All methods in use.
        pub const METHODS: &[Method] = &[$($constant),*];
    };
}

macro_rules! events {
    ($($constant:ident = $name:literal;)*) => {
        $(pub const $constant: &str = $name;)*
        /// All events in use.
        pub const EVENTS: &[&str] = &[$($constant),*];
    };
}

methods! {
    BROWSER_CANCEL_DOWNLOAD = "Browser.cancelDownload";
    BROWSER_CLOSE = "Browser.close";
    BROWSER_GET_VERSION = "Browser.getVersion";
    BROWSER_GRANT_PERMISSIONS = "Browser.grantPermissions";
    BROWSER_SET_DOWNLOAD_BEHAVIOR = "Browser.setDownloadBehavior";
    DOM_DESCRIBE_NODE = "DOM.describeNode";
    DOM_SET_FILE_INPUT_FILES = "DOM.setFileInputFiles";
    EMULATION_SET_DEVICE_METRICS_OVERRIDE = "Emulation.setDeviceMetricsOverride";
    EMULATION_SET_GEOLOCATION_OVERRIDE = "Emulation.setGeolocationOverride";
    EMULATION_SET_LOCALE_OVERRIDE = "Emulation.setLocaleOverride";
    EMULATION_SET_TIMEZONE_OVERRIDE = "Emulation.setTimezoneOverride";
    EMULATION_SET_USER_AGENT_OVERRIDE = "Emulation.setUserAgentOverride";
    EMULATION_SET_EMULATED_MEDIA = "Emulation.setEmulatedMedia";
    EMULATION_SET_FOCUS_EMULATION_ENABLED = "Emulation.setFocusEmulationEnabled";
    EMULATION_SET_VIRTUAL_TIME_POLICY = "Emulation.setVirtualTimePolicy";
    FETCH_CONTINUE_REQUEST = "Fetch.continueRequest";
    FETCH_DISABLE = "Fetch.disable";
    FETCH_ENABLE = "Fetch.enable";
    FETCH_FAIL_REQUEST = "Fetch.failRequest";
    FETCH_FULFILL_REQUEST = "Fetch.fulfillRequest";
    INPUT_DISPATCH_DRAG_EVENT = "Input.dispatchDragEvent";
    INPUT_DISPATCH_KEY_EVENT = "Input.dispatchKeyEvent";
    INPUT_DISPATCH_MOUSE_EVENT = "Input.dispatchMouseEvent";
    INPUT_INSERT_TEXT = "Input.insertText";
    INPUT_SET_INTERCEPT_DRAGS = "Input.setInterceptDrags";
    INSPECTOR_ENABLE = "Inspector.enable";
    LOG_ENABLE = "Log.enable";
    NETWORK_ENABLE = "Network.enable";
    NETWORK_GET_RESPONSE_BODY = "Network.getResponseBody";
    NETWORK_LOAD_NETWORK_RESOURCE = "Network.loadNetworkResource";
    NETWORK_SET_BYPASS_SERVICE_WORKER = "Network.setBypassServiceWorker";
    NETWORK_SET_BLOCKED_URLS = "Network.setBlockedURLs";
    NETWORK_SET_EXTRA_HTTP_HEADERS = "Network.setExtraHTTPHeaders";
    PAGE_ADD_SCRIPT_TO_EVALUATE_ON_NEW_DOCUMENT = "Page.addScriptToEvaluateOnNewDocument";
    PAGE_BRING_TO_FRONT = "Page.bringToFront";
    PAGE_CAPTURE_SCREENSHOT = "Page.captureScreenshot";
    PAGE_CRASH = "Page.crash";
    PAGE_CREATE_ISOLATED_WORLD = "Page.createIsolatedWorld";
    PAGE_ENABLE = "Page.enable";
    PAGE_GET_LAYOUT_METRICS = "Page.getLayoutMetrics";
    PAGE_GET_NAVIGATION_HISTORY = "Page.getNavigationHistory";
    PAGE_HANDLE_JAVASCRIPT_DIALOG = "Page.handleJavaScriptDialog";
    PAGE_NAVIGATE = "Page.navigate";
    PAGE_NAVIGATE_TO_HISTORY_ENTRY = "Page.navigateToHistoryEntry";
    PAGE_RELOAD = "Page.reload";
    PAGE_SCREENCAST_FRAME_ACK = "Page.screencastFrameAck";
    PAGE_SET_INTERCEPT_FILE_CHOOSER_DIALOG = "Page.setInterceptFileChooserDialog";
    PAGE_START_SCREENCAST = "Page.startScreencast";
    PAGE_STOP_LOADING = "Page.stopLoading";
    PAGE_STOP_SCREENCAST = "Page.stopScreencast";
    RUNTIME_ADD_BINDING = "Runtime.addBinding";
    RUNTIME_ENABLE = "Runtime.enable";
    RUNTIME_EVALUATE = "Runtime.evaluate";
    RUNTIME_RUN_IF_WAITING_FOR_DEBUGGER = "Runtime.runIfWaitingForDebugger";
    RUNTIME_TERMINATE_EXECUTION = "Runtime.terminateExecution";
    STORAGE_CLEAR_COOKIES = "Storage.clearCookies";
    STORAGE_CLEAR_DATA_FOR_ORIGIN = "Storage.clearDataForOrigin";
    STORAGE_GET_COOKIES = "Storage.getCookies";
    STORAGE_SET_COOKIES = "Storage.setCookies";
    TARGET_ATTACH_TO_BROWSER_TARGET = "Target.attachToBrowserTarget";
    TARGET_ATTACH_TO_TARGET = "Target.attachToTarget";
    TARGET_CLOSE_TARGET = "Target.closeTarget";
    TARGET_CREATE_BROWSER_CONTEXT = "Target.createBrowserContext";
    TARGET_CREATE_TARGET = "Target.createTarget";
    TARGET_DETACH_FROM_TARGET = "Target.detachFromTarget";
    TARGET_DISPOSE_BROWSER_CONTEXT = "Target.disposeBrowserContext";
    TARGET_GET_TARGET_INFO = "Target.getTargetInfo";
    TARGET_GET_TARGETS = "Target.getTargets";
    TARGET_SET_AUTO_ATTACH = "Target.setAutoAttach";
    TARGET_SET_DISCOVER_TARGETS = "Target.setDiscoverTargets";
}

events! {
    EMULATION_VIRTUAL_TIME_BUDGET_EXPIRED = "Emulation.virtualTimeBudgetExpired";
    FETCH_REQUEST_PAUSED = "Fetch.requestPaused";
    INPUT_DRAG_INTERCEPTED = "Input.dragIntercepted";
    INSPECTOR_TARGET_CRASHED = "Inspector.targetCrashed";
    INSPECTOR_WORKER_SCRIPT_LOADED = "Inspector.workerScriptLoaded";
    LOG_ENTRY_ADDED = "Log.entryAdded";
    NETWORK_EVENT_SOURCE_MESSAGE_RECEIVED = "Network.eventSourceMessageReceived";
    NETWORK_LOADING_FAILED = "Network.loadingFailed";
    NETWORK_LOADING_FINISHED = "Network.loadingFinished";
    NETWORK_REQUEST_WILL_BE_SENT = "Network.requestWillBeSent";
    NETWORK_RESPONSE_RECEIVED = "Network.responseReceived";
    NETWORK_WEB_SOCKET_CLOSED = "Network.webSocketClosed";
    NETWORK_WEB_SOCKET_CREATED = "Network.webSocketCreated";
    NETWORK_WEB_SOCKET_FRAME_RECEIVED = "Network.webSocketFrameReceived";
    NETWORK_WEB_SOCKET_FRAME_SENT = "Network.webSocketFrameSent";
    NETWORK_WEB_SOCKET_HANDSHAKE_RESPONSE_RECEIVED = "Network.webSocketHandshakeResponseReceived";
    PAGE_DOWNLOAD_PROGRESS = "Page.downloadProgress";
    PAGE_DOWNLOAD_WILL_BEGIN = "Page.downloadWillBegin";
    PAGE_FILE_CHOOSER_OPENED = "Page.fileChooserOpened";
    PAGE_FRAME_ATTACHED = "Page.frameAttached";
    PAGE_FRAME_DETACHED = "Page.frameDetached";
    PAGE_FRAME_NAVIGATED = "Page.frameNavigated";
    PAGE_FRAME_REQUESTED_NAVIGATION = "Page.frameRequestedNavigation";
    PAGE_FRAME_STARTED_LOADING = "Page.frameStartedLoading";
    PAGE_FRAME_STARTED_NAVIGATING = "Page.frameStartedNavigating";
    PAGE_FRAME_STOPPED_LOADING = "Page.frameStoppedLoading";
    PAGE_JAVASCRIPT_DIALOG_OPENING = "Page.javascriptDialogOpening";
    PAGE_LOAD_EVENT_FIRED = "Page.loadEventFired";
    PAGE_NAVIGATED_WITHIN_DOCUMENT = "Page.navigatedWithinDocument";
    PAGE_SCREENCAST_FRAME = "Page.screencastFrame";
    PAGE_WINDOW_OPEN = "Page.windowOpen";
    RUNTIME_BINDING_CALLED = "Runtime.bindingCalled";
    RUNTIME_CONSOLE_API_CALLED = "Runtime.consoleAPICalled";
    RUNTIME_EXCEPTION_THROWN = "Runtime.exceptionThrown";
    TARGET_ATTACHED_TO_TARGET = "Target.attachedToTarget";
    TARGET_DETACHED_FROM_TARGET = "Target.detachedFromTarget";
    TARGET_TARGET_CRASHED = "Target.targetCrashed";
    TARGET_TARGET_CREATED = "Target.targetCreated";
    TARGET_TARGET_DESTROYED = "Target.targetDestroyed";
    TARGET_TARGET_INFO_CHANGED = "Target.targetInfoChanged";
}

/// The parameters of a method that takes none.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct NoParams {}
