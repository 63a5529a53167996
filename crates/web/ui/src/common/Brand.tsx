export function Brand({ page }: { page: string }) {
  return (
    <h1 class="brand">
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <rect width="16" height="16" rx="4" fill="#0072B2" />
        <path d="M3.2 5 5.3 11 8 6l2.7 5 2.1-6" fill="none" stroke="#fff" stroke-width="1.7" stroke-linejoin="round" stroke-linecap="round" />
      </svg>
      webgym <span class="muted">{page}</span>
    </h1>
  );
}
