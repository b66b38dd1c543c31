// Written from protocol/ by `python -m memd.clients.node`; a test compares the two.
export interface ActivityEvent {
  seq: number;
  at: string;
  event: string;
  what: string;
}
export interface ActivityPage {
  events: ActivityEvent[];
  last: number;
}
export interface Added {
  kind: "added";
  record: MemoryRecord;
  retires?: Retirement[];
  decision: Decision;
}
export interface Agent {
  pool: string;
  role: string;
  perspectives: string[];
  new: boolean;
  has_prompt: boolean;
}
export interface AgentOutcome {
  at: string;
  document: string;
  turn: string;
  outcome: "as_is" | "as_is_checked" | "failed" | "interrupted" | "major" | "minor" | "redo" | "refused" | "rerouted" | "running" | "silent";
  weight: number;
  by?: "memd" | "user";
  perspective?: string;
  task?: string;
}
export interface AgentOutcomes {
  agent: string;
  outcomes: AgentOutcome[];
}
export interface AgentRanking {
  agents: RankedAgent[];
}
export interface AgentState {
  pool: string;
  role: string;
  perspectives: string[];
  prompt: string;
  records: number;
  courses: CourseState[];
}
export interface AliasAdded {
  kind: "alias_added";
  pool: string;
  names: string[];
  evidence?: string;
  by?: "memd" | "user";
}
export interface Archived {
  kind: "archived";
  pool: string;
  ids: string[];
  why?: "capacity" | "consolidated" | "faded";
  by?: string;
}
export interface Arrived {
  kind: "arrived";
  pool: string;
  partition: string;
  name: string;
  epoch: number;
  count: number;
  lamport?: number;
  closed?: boolean;
  segments?: [number, unknown][];
  lines?: ArrivedLine[];
  gone?: number[];
  refused?: [number, string][];
  problem?: string;
  after?: Shift[];
  review?: [string, boolean][];
}
export interface ArrivedLine {
  n: number;
  lamport: number;
  what: "add" | "inv" | "other";
  ref: string;
  until: string;
  why: string;
}
export interface Artifact {
  type: "commit" | "file" | "url";
  ref: string;
  note?: string;
  anchor?: string;
  blob?: string;
  section?: string;
  root?: string;
}
export interface AskedQuestion {
  course: string;
  chapter: string;
  question: string;
  right: boolean;
  days: number;
}
export interface Asleep {
  pool: string;
  tasks_per_day: number;
  days: number;
  faded: number;
  pruned: number;
  first: MemoryRecord[];
}
export interface AuthorJudged {
  kind: "author_judged";
  pool: string;
  partition: string;
  standing: "muted" | "new" | "trusted";
  withheld?: boolean;
  after?: Shift[];
  review?: [string, boolean][];
}
export interface AuthorState {
  partition: string;
  name: string;
  standing?: "muted" | "new" | "trusted";
  epoch?: number;
  lines?: number;
  live?: number;
  waiting?: number;
  untrusted?: number;
  refused?: number;
  problem?: string;
  taken_at?: string;
  closed?: boolean;
  own?: boolean;
}
export interface BackupInfo {
  name: string;
  at: string;
  version: string;
  journal_seq: number;
  archive_seq: number;
  size_bytes: number;
  layout: number;
  current: boolean;
}
export interface BackupList {
  folder: string;
  backups: BackupInfo[];
}
export interface Belief {
  id: string;
  text: string;
  valid_from: string;
  valid_to: string;
  believed_from: number;
  believed_until: number;
  ended: string;
}
export interface Bound {
  folder: string;
  pool: string;
  title: string;
  was: string;
  names: string[];
  moved: number;
  unkeyed: string[];
  stays: number;
}
export interface Change {
  seq: number;
  at: number;
  kind: string;
  rev?: number;
  by?: string;
  decision?: Decision | null;
  reason?: string;
}
export interface ChangeDecided {
  kind: "decided";
  id: string;
  accepted: boolean;
  lapsed?: boolean;
}
export interface ChangeProposed {
  kind: "proposed";
  id: string;
  what: "conflict" | "duplicate" | "forget" | "patch" | "skill" | "skill_edit" | "skill_retire";
  record: string;
  against?: string;
  document?: string;
  by?: string;
  label?: string;
  reason?: string;
  steps?: PatchStep[];
  pool?: string;
  own?: string[];
  rounds?: number;
}
export interface ChangeReopened {
  kind: "reopened";
  id: string;
  after?: Shift[];
}
export interface ChapterState {
  title: string;
  sections: number;
  questions: number;
  tests: TestScore[];
}
export interface Checked {
  event: "checked";
  turn: string;
  at: string;
  what: string;
  passed?: number;
  failed?: number;
  state?: "failed" | "passed" | "unclear";
}
export interface Checkpoint {
  kind: "checkpoint";
  journal_seq?: number;
  journal_tip?: unknown;
  archive_seq?: number;
  archive_tip?: unknown;
}
export interface Citation {
  record: string;
  status: "active" | "archived" | "hidden" | "provisional" | "quarantined" | "retired";
  start: number;
  end: number;
}
export interface Committed {
  event: "committed";
  turn: string;
  at: string;
  id: string;
  subject: string;
  files?: number;
}
export interface ConfidenceRules {
  promote_to_L2: ToPlaybook;
  promote_to_L1: ToIdentity;
  deprecate: Deprecation;
}
export interface ConsentState {
  pool: string;
  provider: string;
  url: string;
  family: string;
  until: string;
  title?: string;
  private?: boolean;
  holds?: boolean;
  waiting?: number;
  private_left?: number;
}
export interface ContextPackage {
  context: string;
  selected: Selected[];
  scope: string[];
  tokens: number;
  left_out: number;
  note: string;
  project: string;
}
export interface Count {
  candidates: number;
  uses: number;
  last: number;
  impact: number;
}
export interface Counted {
  kind: "counted";
  pool: string;
  counts: { [name: string]: Count };
  perspective?: string;
  step?: number;
  perspective_step?: number;
  impact_share?: number;
  level_uses?: number[];
}
export interface CourseAnswer {
  question: string;
  right: boolean;
  days: number;
}
export interface CourseAsked {
  kind: "course_asked";
  document: string;
  test: "after" | "before" | "review";
  answers: CourseAnswer[];
}
export interface CourseChapter {
  title: string;
  sections?: CourseSection[];
  questions?: CourseQuestion[];
}
export interface CourseClosed {
  kind: "course_closed";
  document: string;
}
export interface CourseGap {
  chapter: string;
  question: string;
  keywords: string[];
  at: number;
}
export interface CourseOpened {
  kind: "course_opened";
  pool: string;
  document: string;
  sections: CoursePart[];
  questions: CoursePart[];
}
export interface CoursePart {
  chapter: number;
  turn: string;
}
export interface CourseQuestion {
  question: string;
  keywords: string[];
}
export interface CourseSection {
  text: string;
  heading?: string;
}
export interface CourseState {
  course: string;
  title: string;
  is_open: boolean;
  opened_at: number;
  chapters: ChapterState[];
  gaps: CourseGap[];
  due: number;
  next: number;
}
export interface CourseTaught {
  course: string;
  title: string;
  added: number;
  kept: number;
  gone: number;
  forgotten: number;
  questions: number;
  asked: number;
  right: number;
}
export interface CoursesAsked {
  asked: AskedQuestion[];
  is_read: boolean;
}
export interface CuratedEvidence {
  type: string;
  ref: string;
  note: string;
}
export interface CuratedProposal {
  id: string;
  kind: "deprecate" | "merge" | "promote" | "review";
  by: string;
  pool: string;
  record: string;
  statement: string;
  title?: string;
  layer?: "L1" | "L2" | "L3" | "";
  confidence?: number;
  evidence?: CuratedEvidence[];
  why?: string;
  change_condition?: string;
  against?: string;
  against_statement?: string;
  let_go?: string;
  let_go_statement?: string;
}
export interface Curation {
  proposals?: CuratedProposal[];
  left_out?: [string, number][];
  read?: number;
  open?: number;
  lapsed?: number;
  notes?: string[];
  dry_run?: boolean;
}
export interface CurrentState {
  pool: string;
  title: string;
  rev: string;
  items: StateItem[];
  hidden: { [name: string]: number };
}
export interface Cut {
  seq: number;
  start: number;
  end: number;
  rule: string;
}
export interface DeadLetter {
  id: number;
  document: string;
  turn: string;
  stage: string;
  reason: string;
  attempts?: number;
  at?: number;
}
export interface DeadLetters {
  letters: DeadLetter[];
  total: number;
}
export interface Decay {
  L3_after_days: number;
}
export interface Decided {
  open: number;
  job: JobState | null;
  records: JudgedRecord[];
  dry_run: boolean;
}
export interface Decision {
  action: "add" | "invalidate" | "noop" | "update";
  reason: string;
  steps?: Step[];
  neighbours?: Neighbour[];
  rounds?: number;
}
export interface Delivered {
  kind: "delivered";
  pool: string;
  partition: string;
  epoch: number;
  count: number;
  gone?: number;
  commit?: string;
  address?: string;
}
export interface Deprecation {
  contradiction_evidence_required: number;
}
export interface Detail {
  summary: MemoryRecord;
  number: number;
  total: number;
  document: string;
  turn: string;
  at: string;
  text: string;
  start: number;
  end: number;
  path: string;
}
export interface DiskPart {
  name: string;
  size_bytes: number;
  free_bytes: number;
  freed_by: string;
}
export interface DiskUse {
  parts: DiskPart[];
  total_bytes: number;
}
export interface Distilled {
  kind: "distilled";
  archive_seq: number;
  captures: number;
  candidates: number;
  rejected?: { [name: string]: number };
  failed?: Failure[];
}
export interface Done {
  pending: number;
}
export interface EarlierRemote {
  address: string;
  lines?: number;
  forgotten?: number;
}
export interface Erased {
  kind: "erased";
  ids?: string[];
  retires?: Retirement[];
  by?: string;
}
export interface Evidence {
  kind: "confirmed" | "corrected" | "restated";
  span: Span;
  trust: "assistant" | "document" | "tool" | "user";
  at: string;
}
export interface Explained {
  record: MemoryRecord;
  lines: Line[];
  quote_holds: boolean | null;
  session: string;
  project: string;
  changes: Change[];
  replaced: MemoryRecord[];
  replaced_by: MemoryRecord | null;
  held_by: MemoryRecord | null;
  changes_if: string;
}
export interface ExportPage {
  records: ExportedRecord[];
  sessions: SessionOpened[];
  pools: PoolOpened[];
  next: string;
  total: number;
  screened: { [name: string]: number };
  stayed: { [name: string]: number };
}
export interface ExportedRecord {
  record: MemoryRecord;
  changes?: Change[];
}
export interface Fading {
  record: MemoryRecord;
  days_left: number;
}
export interface FadingBin {
  days: number;
  records: number;
}
export interface FadingList {
  records: Fading[];
  scope: string[];
  total: number;
  overdue: MemoryRecord[];
  gone: number;
  bin_days: number;
  histogram: FadingBin[];
  retention: number[];
}
export interface Failure {
  seq: number;
  document: string;
  turn: string;
  stage: string;
  error: string;
}
export interface FeedbackGiven {
  kind: "feedback";
  agent?: string;
  used?: string[];
  helpful?: string[];
  wrong?: string[];
  failed?: boolean;
  samples?: Sample[];
}
export interface FeedbackTaken {
  records: number;
  samples: number;
  learnt_from: number;
  note: string;
}
export interface Folded {
  kind: "folded";
  tallies?: { [name: string]: Tally };
  pools?: Rest[];
}
export interface ForgetPlan {
  records: Going[];
  record_count: number;
  captures: number;
  documents: string[];
  spooled: number;
  names: number;
}
export interface FoundSession {
  session: SessionState;
  title: string;
  score: number;
  line: string;
  turn: string;
}
export interface Going {
  id: string;
  type: string;
  status: string;
  line: string;
  why: string;
}
export interface GrantState {
  id: string;
  subject: string;
  pools: string[];
  sources: string[];
  granted_at: string;
  expires_at: string;
  revoked_at: string;
}
export interface Granted {
  kind: "granted";
  grant?: string;
  subject?: string;
  pools?: string[];
  sources?: string[];
  expires_at?: string;
}
export interface Grants {
  grants: GrantState[];
  sources: RevokedSource[];
}
export interface HandedOver {
  event: "handed_over";
  turn: string;
  at: string;
  done?: string[];
  decided?: string[];
  open?: string[];
  closed?: string[];
}
export interface HandoverLine {
  section: string;
  text: string;
  state: "refused" | "told" | "verified";
  missing?: string[];
}
export interface HandoverTaken {
  lines: HandoverLine[];
}
export interface Heard {
  document: string;
  turn: string;
  at: string;
  trust: "assistant" | "document" | "tool" | "user";
  quote: string;
  start: number;
  end: number;
  score: number;
  parts: { [name: string]: number };
  lines: Line[];
  flags: string[];
  outdated: Outdated[];
}
export interface Hidden {
  kind: "hidden";
  documents: string[];
  before: Shift[];
  after: Shift[];
}
export interface History {
  record: MemoryRecord;
  versions: Version[];
}
export interface Hit {
  record: MemoryRecord;
  score: number;
  parts: { [name: string]: number };
  alike: string[];
  lines: Line[];
  history: Belief[];
  details: number;
}
export interface IdentityLayer {
  max_records: number;
  allowed_tags: string[];
  write_policy: "manual_only" | "manual_or_curator_only";
}
export interface Inbox {
  proposals: Waiting[];
  open: number;
}
export interface Injection {
  document: string;
  at: string;
  rev: string;
  why: string;
  text: string;
  ids: string[];
  tokens: number;
  times: number;
  asked_at: string;
  turn: string;
  prompt: string;
}
export interface Injections {
  injections: Injection[];
  total: number;
}
export interface Interrupted {
  event: "interrupted";
  turn: string;
  at: string;
  by?: "error" | "user";
}
export interface Invalidated {
  kind: "invalidated";
  id: string;
  valid_to: string;
  reason: string;
  by?: string;
}
export interface JobState {
  id: string;
  name: string;
  state: "done" | "failed" | "running";
  done: number;
  total: number;
  detail: string;
  report: { [name: string]: string | number | string[] };
  problem: Problem | null;
}
export interface Journaled {
  entries: Logged[];
  last: number;
}
export interface JudgedRecord {
  id: string;
  description: string;
  before: "active" | "archived" | "hidden" | "provisional" | "quarantined" | "retired";
  after: "active" | "archived" | "hidden" | "provisional" | "quarantined" | "retired" | "";
}
export interface JudgedTask {
  agent: string;
  turn: string;
  at: number;
  outcome: "as_is" | "as_is_checked" | "failed" | "interrupted" | "major" | "minor" | "redo" | "refused" | "rerouted" | "running" | "silent";
}
export interface Judgement {
  records: JudgedRecord[];
  dry_run: boolean;
}
export interface Layers {
  L1: IdentityLayer;
  L2: PlaybookLayer;
  L3: ProjectLayer;
}
export interface Left {
  pool: string;
  title: string;
  records: number;
  left: boolean;
  unshared: boolean;
}
export interface Line {
  turn: string;
  at: string;
  who: string;
  text: string;
  cited: boolean;
  document: string;
  start: number;
}
export interface LineRefusal {
  n: number;
  why: string;
}
export interface LinkList {
  links: LinkState[];
  checked: number;
  left: number;
}
export interface LinkState {
  id: string;
  description: string;
  path: string;
  state: "changed" | "fresh" | "gone" | "moved" | "out of reach";
  now: string;
  by: "evidence" | "import";
  anchor?: string;
}
export interface Linked {
  record: MemoryRecord;
  hops: number;
  via: string;
}
export interface Logged {
  seq: number;
  at: number;
  operation: PoolOpened | AliasAdded | Moved | SessionOpened | SessionClosed | SessionResumed | Hidden | Unhidden | Added | Updated | Merged | Invalidated | Pinned | Distilled | Retried | Granted | Revoked | ChangeProposed | ChangeDecided | ChangeReopened | FeedbackGiven | RecordJudged | Redacted | Purged | Erased | Rebased | Counted | Slept | Archived | Restored | Released | Reviewed | Folded | RemoteConsented | RemoteReserved | RemoteSettled | ShareOpened | ShareClosed | ShareChosen | Offered | Delivered | Arrived | AuthorJudged | ShareLeased | PatchApplied | PatchTaken | PatchGone | PiTrusted | PolicySet | SkillRevised | CourseOpened | CourseAsked | CourseClosed | TasksJudged | TaskRated | Checkpoint | Unknown;
}
export interface Loosened {
  rule: string;
  default: string;
  asked: string;
}
export interface MapLink {
  source: number;
  target: number;
  kind: "in" | "names" | "object" | "replaces" | "subject";
}
export interface MapMark {
  kind: "pool" | "record" | "thing" | "topic";
  id: string;
  label: string;
  type: string;
  status: "active" | "archived" | "hidden" | "provisional" | "quarantined" | "retired" | "";
  trust: string;
  strength: number;
  size: number;
}
export interface MemoryMap {
  marks: MapMark[];
  links: MapLink[];
  records: number;
  left: number;
}
export interface MemoryRecord {
  id: string;
  pool: string;
  kind: "edge" | "fact" | "note" | "persona" | "procedure";
  content: string;
  description: string;
  provenance: Provenance;
  layer?: "L1" | "L2" | "L3";
  status?: "active" | "archived" | "hidden" | "provisional" | "quarantined" | "retired";
  rev?: number;
  key?: string;
  value?: string;
  tags?: string[];
  aliases?: string[];
  learnings?: { [name: string]: string };
  relates_to?: string[];
  artifacts?: Artifact[];
  language?: string;
  valid_from?: string;
  valid_to?: string;
  learned_at?: number;
  retired_at?: number;
  confidence?: number;
  volatility?: "semi" | "situational" | "stable";
  review?: Review | null;
  supersedes?: string[];
  superseded_by?: string;
  copy_of?: string;
  needs_review?: boolean;
  placed?: boolean;
  pinned?: boolean;
  flags?: string[];
  injection?: number | null;
  signal?: Signal;
  type: string;
}
export interface Merged {
  kind: "merged";
  id: string;
  evidence: Evidence;
  decision: Decision;
}
export interface ModelList {
  models: ModelState[];
  reembedding: Reembedding | null;
}
export interface ModelState {
  id: string;
  version: string;
  dimension: number;
  size_bytes: number;
  folder: string;
  package: boolean;
  searches: boolean;
  wanted: boolean;
  problem: string;
}
export interface Moved {
  kind: "moved";
  ids: string[];
  pool: string;
  reason: string;
  unkeyed?: string[];
}
export interface Nearest {
  id: string;
  description: string;
  score: number;
}
export interface Neighbour {
  id: string;
  rev: number;
  similarity: number;
  label: string;
}
export interface Noted {
  event: "noted";
  turn: string;
  at: string;
  text: string;
  role?: "assistant" | "user";
  pool?: string;
}
export interface Offered {
  kind: "offered";
  pool: string;
  partition: string;
  n: number;
  what: "add" | "inv";
  id?: string;
  rev?: number;
  ref?: string;
  of?: string[];
  until?: string;
  why?: string;
  lamport: number;
  at: number;
  blind: unknown;
  hash: unknown;
}
export interface Origin {
  host: string;
  session: string;
  cwd?: string;
  repository?: Repository | null;
  agent?: string;
  live?: boolean;
  title?: string;
  visibility?: "organisation" | "private" | "shared";
}
export interface Outbox {
  items?: OutboxItem[];
}
export interface OutboxItem {
  id: string;
  line: string;
  due?: string;
  why_not?: string;
}
export interface Outcome {
  at?: string;
  what?: string;
}
export interface Outdated {
  start: number;
  end: number;
  record: string;
  replaced_by: string;
}
export interface Page {
  records: MemoryRecord[];
  next: string;
  total: number;
}
export interface PartitionTaken {
  partition: string;
  name?: string;
  standing?: "muted" | "new" | "trusted";
  problem?: string;
  added?: number;
  retired?: number;
  proposed?: number;
  forgotten?: number;
  waiting?: number;
  refused?: LineRefusal[];
  left?: number;
  wanted?: number[];
  closed?: boolean;
}
export interface PassGranted {
  token: string;
  grant: GrantState | null;
  shown: number;
}
export interface PatchApplied {
  kind: "patch_applied";
  pool: string;
  patch: string;
  day: string;
  generated_by: string;
  steps: PatchStep[];
  names?: [string, string][];
  proposal?: string;
  sent?: boolean;
  hash?: string;
}
export interface PatchBytes {
  patch: string;
  data?: unknown;
  standing?: string;
  left_out?: [string, string][];
}
export interface PatchGone {
  kind: "patch_gone";
  pool: string;
  patch: string;
  after?: Shift[];
}
export interface PatchList {
  pool: string;
  title?: string;
  trusted?: boolean;
  patches?: PatchState[];
}
export interface PatchState {
  patch: string;
  standing: "applied" | "gone" | "proposed" | "sent" | "taken";
  day?: string;
  at?: string;
  generated_by?: string;
  author?: string;
  commit?: string;
  in_tree?: boolean;
  file_needed?: boolean;
  lines?: string[];
  proposal?: string;
}
export interface PatchStep {
  op: "add" | "deprecate" | "promote" | "review" | "supersede";
  id: string;
  rev: number;
  to: string;
  layer: "L1" | "L2" | "L3" | "";
  confidence: number;
  reason: string;
  day: string;
  next_review: string;
  change_condition: string;
  evidence: [string, string, string][];
}
export interface PatchTaken {
  kind: "patch_taken";
  pool: string;
  patch: string;
  blob: string;
  commit?: string;
  author?: string;
  day?: string;
  generated_by?: string;
  steps?: PatchStep[];
  names?: [string, string][];
  refused?: [string, string][];
  after?: Shift[];
}
export interface PatchesTaken {
  taken?: string[];
  known?: number;
  gone?: string[];
  back?: string[];
  added?: number;
  retired?: number;
  refused?: [string, string][];
  conflicts?: number;
  lines?: string[];
  dry_run?: boolean;
}
export interface PauseState {
  folder: string;
  since: string;
  until: string;
}
export interface Pauses {
  pauses: PauseState[];
  ended: boolean;
}
export interface PiTrusted {
  kind: "pi_trusted";
  pool: string;
  trusted?: boolean;
  after?: Shift[];
}
export interface Pinned {
  kind: "pinned";
  id: string;
  pinned: boolean;
  layer?: "L1" | "L2" | "L3" | "";
  principle?: boolean | null;
}
export interface PlacedSkill {
  id: string;
  pool: string;
  name: string;
  path: string;
  rung: "honed" | "placed" | "tuned" | "verified";
  uses?: number;
  good?: number;
  bad?: number;
  without?: number;
  last_used?: string;
  fell?: string;
  retire?: string;
  mend?: string;
  better?: string;
  offered?: boolean;
  gone?: string[];
  revisions?: SkillRevision[];
  history?: SkillUse[];
}
export interface PlanItem {
  text: string;
  status: "begun" | "done" | "dropped" | "open";
}
export interface Planned {
  event: "planned";
  turn: string;
  at: string;
  items: PlanItem[];
}
export interface PlaybookChange {
  op: "add" | "deprecate" | "promote" | "review" | "supersede";
  old?: string;
  new?: string;
  confidence?: number;
  proof?: string;
}
export interface PlaybookLayer {
  max_records: number;
  allowed_tags: string[];
  write_policy: "curator_only" | "curator_or_maintainer_only" | "manual_only";
}
export interface Pointed {
  type: "commitment" | "convention" | "decision" | "event" | "fact" | "identity" | "lesson" | "preference" | "procedure";
  quotes: Pointer[];
  about?: "" | "project" | "user";
  learnings?: { [name: string]: string };
}
export interface Pointer {
  turn: string;
  start: number;
  end: number;
}
export interface Policy {
  layers: Layers;
  confidence_rules: ConfidenceRules;
  review_policy: ReviewPolicy;
  retrieval: Retrieval;
}
export interface PolicySet {
  kind: "policy_set";
  pool: string;
  digest: string;
  text?: string;
  accepted?: boolean;
}
export interface PolicyState {
  pool: string;
  policy: Policy;
  title?: string;
  file?: string;
  digest?: string;
  trusted?: boolean;
  accepted?: boolean;
  loosened?: Loosened[];
  problem?: string;
  notes?: string[];
}
export interface PoolList {
  pools: PoolSummary[];
}
export interface PoolOpened {
  kind: "pool_opened";
  pool: string;
  title?: string;
  roots?: string[];
  evidence?: string;
  role?: string;
  perspectives?: string[];
  prompt?: string;
}
export interface PoolSummary {
  pool: string;
  title: string;
  counts: { [name: string]: number };
  role: string;
  perspectives: string[];
}
export interface PreparedShare {
  pool: string;
  partition: string;
  address: string;
  epoch: number;
  count: number;
  head: unknown;
  hashes?: unknown[];
  segments?: SegmentData[];
  next?: number;
  added?: number;
  retired?: number;
  gone?: number;
  held?: OutboxItem[];
}
export interface PrintNoted {
  known: boolean;
}
export interface Problem {
  code: string;
  message: string;
  hint?: string;
}
export interface ProfileLine {
  id: string;
  section: string;
  start: number;
  end: number;
  status: "active" | "archived" | "hidden" | "provisional" | "quarantined" | "retired";
}
export interface ProfileText {
  text: string;
  rev: string;
  ids: string[];
  scope: string[];
  tokens: number;
  lines?: ProfileLine[];
  pending?: number;
  static_characters?: number;
  due?: boolean;
  why?: string;
  note?: string;
  recalled?: PromptMemories | null;
}
export interface ProjectLayer {
  max_records_per_project: number;
  write_policy: "auto_ok" | "capturer_only";
}
export interface PromptMemories {
  text: string;
  rev: string;
  ids: string[];
  tokens: number;
}
export interface Proposed {
  ids: string[];
  known: number;
  hidden: string[];
  shown: string[];
}
export interface Provenance {
  author: string;
  source: string;
  trust: "assistant" | "document" | "tool" | "user";
  spans: Span[];
  quote: string;
  said_at: string;
  visibility?: "organisation" | "private" | "shared";
  evidence?: Evidence[];
  distiller?: string;
  rules?: number;
}
export interface Purged {
  kind: "purged";
  redacted: number;
}
export interface Ran {
  event: "ran";
  turn: string;
  at: string;
  command: string;
  exit_status?: number;
  duration_ms?: number;
}
export interface RankedAgent {
  agent: string;
  score: number;
  low: number;
  high: number;
  n: number;
  n_eff: number;
  by_role: boolean;
  role_fit: number;
  recent: number;
  running: number;
}
export interface Rebased {
  kind: "rebased";
  record: MemoryRecord;
}
export interface Recalled {
  hits: Hit[];
  scope: string[];
  turns: Heard[];
  principles: Hit[];
  recall: string;
  strength: number;
  abstained: boolean;
  reason: string;
  nearest: Nearest | null;
  filtered: number;
  pending: number;
  tokens: number;
  note: string;
  screened: { [name: string]: number };
  linked: Linked[];
  period: [string, string] | null;
  corrected: string;
  method: "overview" | "records" | "records and turns";
}
export interface RecordJudged {
  kind: "judged";
  id: string;
  verdict: "right" | "undone" | "wrong";
  at: string;
  before: Shift;
  after: Shift;
}
export interface RecordList {
  records: MemoryRecord[];
  left: number;
}
export interface RecordTopic {
  label: string;
  records: number;
  ids: string[];
}
export interface RecordsImported {
  added: number;
  known: number;
  differing: number;
  refused: Refusal[];
}
export interface RecordsMoved {
  pool: string;
  title: string;
  moved: string[];
  there: string[];
  unkeyed: string[];
  copies: string[];
  visibility: "organisation" | "private" | "shared" | "";
  dry_run: boolean;
}
export interface Redacted {
  kind: "redacted";
  records?: string[];
  turns?: Turns[];
  captures?: number[];
  entries?: Remnant[];
  sessions?: string[];
  cuts?: Cut[];
  marks?: unknown[];
}
export interface Reembedding {
  model: string;
  done: number;
  total: number;
  by_words: boolean;
  problem: string;
}
export interface Reflected {
  event: "reflected";
  turn: string;
  at: string;
  reader: string;
  title?: string;
  statements?: Pointed[];
  upto?: string;
  tokens?: number;
}
export interface ReflectedLearning {
  perspective: string;
  text: string;
  quotes: string[];
}
export interface Reflection {
  taken: number;
  refused: RefusedStatement[];
  learnings: number;
  refused_learnings: RefusedStatement[];
  open: number;
  refused_open: string[];
  refused_title: string;
  tokens: number;
}
export interface ReflectionAsked {
  event: "reflection_asked";
  turn: string;
  at: string;
  tokens?: number;
}
export interface ReflectionCost {
  asked: number;
  answered: number;
  statements: number;
  question_tokens: number;
  answer_tokens: number;
}
export interface ReflectionQuestion {
  due: boolean;
  text: string;
  why: string;
  tokens: number;
}
export interface Refusal {
  turn: string;
  problem: Problem;
}
export interface RefusedStatement {
  number: number;
  reason: "hidden" | "no perspective" | "not found" | "not its words" | "not prose" | "private" | "too short";
}
export interface Released {
  kind: "released";
  ids: string[];
  why?: string;
}
export interface Remembered {
  record: MemoryRecord;
  duplicate: boolean;
  pool_open: boolean;
  dry_run: boolean;
}
export interface Remnant {
  seq: number;
  kind: string;
  payload: unknown;
}
export interface RemoteCall {
  id: string;
  at: string;
  reader: string;
  document: string;
  outcome?: "dropped" | "failed" | "refused" | "sending" | "taken" | "timed out" | "unknown" | "unsent";
  tokens?: number;
  size?: number;
  pointed?: number;
  dropped?: number;
  status?: number;
  has_text?: boolean;
}
export interface RemoteConsented {
  kind: "remote_consented";
  pool: string;
  provider: string;
  url: string;
  family: string;
  until?: string;
  private?: boolean;
}
export interface RemoteDay {
  calls?: number;
  tokens?: number;
  pointed?: number;
  dropped?: number;
  timed_out?: number;
  failed?: number;
}
export interface RemotePreview {
  document: string;
  url: string;
  bodies: string[];
  state: string;
}
export interface RemoteReserved {
  kind: "remote_reserved";
  id: string;
  day: number;
  tokens: number;
  reader: string;
  document: string;
  sent: number;
  upto: number;
  size?: number;
}
export interface RemoteSettled {
  kind: "remote_settled";
  id: string;
  outcome: "dropped" | "failed" | "refused" | "sending" | "taken" | "timed out" | "unknown" | "unsent";
  tokens: number;
  size?: number;
  pointed?: number;
  dropped?: number;
  status?: number;
}
export interface RemoteState {
  summary?: RemoteSummary | null;
  url?: string;
  host?: string;
  dialect?: "anthropic" | "openai";
  trusted?: boolean;
  has_key?: boolean;
  learnt?: number;
  consents?: ConsentState[];
  calls?: RemoteCall[];
}
export interface RemoteSummary {
  provider: string;
  model: string;
  today: RemoteDay;
  cap: number;
  state?: string;
}
export interface ReportLine {
  text: string;
  ids?: string[];
  command?: string;
  level?: number;
}
export interface ReportSection {
  name: "beliefs" | "health" | "needs" | "old" | "used" | "work";
  lines: ReportLine[];
  more?: number;
}
export interface Repository {
  root?: string;
  root_commit?: string;
  remote?: string;
}
export interface Rest {
  pool: string;
  decay: { [name: string]: number[] };
  tasks: [number, number][];
  spent: number;
}
export interface Restored {
  kind: "restored";
  ids: string[];
  why?: "asked" | "recalled";
  quarantined?: string[];
  strength?: number;
  levels_down?: number;
  level_uses?: number[];
}
export interface Retirement {
  id: string;
  valid_to: string;
  reason: string;
}
export interface Retried {
  kind: "retried";
  archive_seq: number;
  document: string;
  turn: string;
  failed?: Failure | null;
}
export interface Retrieval {
  always_load: string[];
  tag_boost: { [name: string]: number };
  time_window_days: TimeWindow;
}
export interface Returned {
  event: "returned";
  turn: string;
  at: string;
  call: string;
  text: string;
}
export interface Review {
  cadence_days?: number;
  next?: string;
  change_condition?: string;
  against?: number;
}
export interface ReviewPolicy {
  semi_stable_days: number;
  stable_days: number;
  decay: Decay;
}
export interface Reviewed {
  kind: "reviewed";
  id: string;
  confidence: number;
  next?: string;
  why?: string;
  against?: number;
}
export interface Revocation {
  grants: string[];
  documents: string[];
  hidden: number;
  believed_again: number;
}
export interface Revoked {
  kind: "revoked";
  grants?: string[];
  sources?: string[];
}
export interface RevokedSource {
  source: string;
  at: string;
}
export interface Reworded {
  event: "reworded";
  turn: string;
  at: string;
  record: string;
  text: string;
}
export interface Rewording {
  id: string;
  text: string;
}
export interface Rhythm {
  buckets: RhythmBucket[];
  until: string;
  before: string;
  after: string;
}
export interface RhythmBucket {
  start: string;
  learnt: number;
  retired: number;
}
export interface Said {
  event: "said";
  turn: string;
  at: string;
  role: "assistant" | "user";
  text: string;
  answers?: string;
  approved?: boolean;
}
export interface Sample {
  id: string;
  features: number[];
  wanted: boolean;
  weight: number;
}
export interface School {
  agent: string;
  courses: CourseState[];
}
export interface Scope {
  folder: string;
  pool: string;
  title: string;
  evidence: string;
  reads: string[];
  seen: string;
  root_commit: string;
  remote: string;
  names: string[];
  alike: [string, string][];
  records: number;
  left: boolean;
  is_open: boolean;
  bound: boolean;
}
export interface SegmentData {
  number: number;
  data: unknown;
}
export interface Selected {
  record: MemoryRecord;
  salience: number;
  why: string;
}
export interface SentPart {
  event: "sent";
  turn: string;
  at: string;
  reader: string;
  text: string;
  turns?: string[];
}
export interface SessionClosed {
  kind: "session_ended";
  document: string;
  at: string;
  reason?: string;
}
export interface SessionEnded {
  event: "session_ended";
  turn: string;
  at: string;
  reason?: string;
}
export interface SessionOpened {
  kind: "session_opened";
  document: string;
  origin: Origin;
  project: string;
  at: string;
  family?: string;
}
export interface SessionOutcome {
  session: SessionState;
  turns: { [name: string]: number };
  troubles: number;
  records: { [name: string]: number };
  failed: number;
  family: string[];
  commits: Committed[];
  checks: Checked[];
  reflections: ReflectionCost | null;
}
export interface SessionPage {
  sessions: SessionState[];
  total: number;
  going_on: number;
}
export interface SessionResumed {
  kind: "session_resumed";
  document: string;
  at: string;
}
export interface SessionStarted {
  event: "session_started";
  turn: string;
  at: string;
  reason?: string;
}
export interface SessionState {
  document: string;
  pool: string;
  title: string;
  agent: string;
  cwd: string;
  live: boolean;
  began_at: string;
  heard_at: string;
  ended_at: string;
  reason: string;
  records: number;
  is_undone: boolean;
}
export interface SessionTurns {
  document: string;
  turns: TranscriptTurn[];
  before: number;
  after: number;
}
export interface SessionsFound {
  found: FoundSession[];
}
export interface Setting {
  name: string;
  value: string;
  default: string;
  source: "default" | "environment" | "file";
  about: string;
  waits: boolean;
  entries: { [name: string]: string };
  label: string;
  labels: { [name: string]: string };
}
export interface SettingList {
  file: string;
  settings: Setting[];
  problem: string;
}
export interface Settled {
  event: "settled";
  turn: string;
  at: string;
  of: string;
  lines: number;
  lost?: number;
  followed?: number;
}
export interface ShareCandidate {
  record: MemoryRecord;
  why_not?: string;
}
export interface ShareChosen {
  kind: "share_chosen";
  pool: string;
  ids: string[];
  keep?: boolean;
}
export interface ShareClosed {
  kind: "share_closed";
  pool: string;
  withdraw?: boolean;
}
export interface ShareEvent {
  at: string;
  author: string;
  partition: string;
  n: number;
  what: "add" | "gone" | "inv";
  id?: string;
  text?: string;
  why?: string;
}
export interface ShareLeased {
  kind: "share_leased";
  pool: string;
  subject?: string;
  until?: number;
  withheld?: string[];
}
export interface ShareList {
  shares?: ShareState[];
}
export interface ShareLog {
  events?: ShareEvent[];
  left?: number;
}
export interface ShareOpened {
  kind: "share_opened";
  pool: string;
  partition: string;
  root?: string;
  remote?: string;
  address?: string;
  name?: string;
  new_sessions?: boolean;
}
export interface ShareReview {
  candidates?: ShareCandidate[];
  left?: number;
}
export interface ShareState {
  pool: string;
  title?: string;
  is_open?: boolean;
  withdrawn?: boolean;
  address?: string;
  mark?: string;
  lease_until?: string;
  withheld?: number;
  partition?: string;
  name?: string;
  new_sessions?: boolean;
  since?: string;
  offered?: number;
  delivered?: number;
  waiting?: number;
  undecided?: number;
  forgotten?: number;
  authors?: AuthorState[];
  earlier?: EarlierRemote[];
}
export interface SharedSkill {
  skill: PlacedSkill;
  text: string;
  sha: string;
  left_out?: string[];
}
export interface Shift {
  id: string;
  status: "active" | "archived" | "hidden" | "provisional" | "quarantined" | "retired";
  valid_to: string;
  retired_at: number;
  superseded_by: string;
}
export interface Signal {
  importance?: number;
  strength?: number;
  strength_by?: { [name: string]: number };
  access_count?: number;
  candidate_count?: number;
  last_access?: number;
  impact?: number;
  level?: number;
}
export interface SkillDraft {
  id: string;
  pool: string;
  name: string;
  form: "line" | "skill";
  steps: SkillStep[];
  rounds: SkillRound[];
  agree: number;
  sessions: number;
  days: number;
  asks?: string[];
  pitfalls?: string[];
  stated_in?: string[];
  refused?: string;
  text?: string;
  rejected?: boolean;
}
export interface SkillList {
  skills: SkillDraft[];
  placed: PlacedSkill[];
  sessions: number;
  units: number;
}
export interface SkillProposals {
  proposed: [string, string][];
  left_out: [string, number][];
  dry_run: boolean;
}
export interface SkillRevised {
  kind: "skill_revised";
  record: string;
  sha: string;
  by: "offered" | "placed" | "retired" | "tuned" | "user";
  then?: "offered" | "placed" | "retired" | "tuned" | "user";
  pool?: string;
  own?: string[];
  rounds?: number;
}
export interface SkillRevision {
  sha: string;
  by: "offered" | "placed" | "retired" | "tuned" | "user";
  at: number;
}
export interface SkillRound {
  document: string;
  turn: string;
  day: string;
  end?: "good" | "unknown";
}
export interface SkillStep {
  text: string;
  rounds: number;
  own?: boolean;
  risk?: string;
  document?: boolean;
}
export interface SkillTuning {
  skill: PlacedSkill;
  edits?: string[];
  accepted?: boolean;
  why?: string;
  before?: number;
  after?: number;
  held_out?: number;
  sessions?: number;
  text?: string;
  sha?: string;
  by?: "tuned" | "user";
}
export interface SkillUse {
  document: string;
  turn: string;
  day: string;
  how: "called" | "read" | "without";
  end?: "bad" | "good" | "unknown";
  at?: number;
}
export interface Slept {
  kind: "slept";
  pool: string;
  tasks_per_day: number;
  days: number;
  retention: number[];
  spared?: ("edge" | "fact" | "note" | "persona" | "procedure")[];
  given?: string[];
}
export interface Slumbered {
  pools: Asleep[];
  off: string[];
  dry_run: boolean;
}
export interface Span {
  document: string;
  turn: string;
  start: number;
  end: number;
}
export interface StateItem {
  id: string;
  section: "decisions" | "open" | "sessions" | "watch";
  text: string;
  by: "check" | "handover" | "plan" | "record" | "request" | "session" | "user";
  at: string;
  since?: string;
  document?: string;
  turn?: string;
  note?: string;
}
export interface Stated {
  event: "stated";
  turn: string;
  at: string;
  section?: "open" | "watch";
  text?: string;
  closes?: string;
}
export interface Statement {
  type: "commitment" | "convention" | "decision" | "event" | "fact" | "identity" | "lesson" | "preference" | "procedure";
  quotes: string[];
  about?: "" | "project" | "user";
}
export interface StatusText {
  version: string;
  protocol: number;
  pid: number;
  started_at: string;
  data_dir: string;
  model: string;
  journal_seq: number;
  archive_seq: number;
  pending: number;
  unembedded: number;
  worker: string;
  records: { [name: string]: number };
  pools: number;
  last: { [name: string]: Outcome };
  failures: string[];
  size_bytes: { [name: string]: number };
  troubles: string[];
  reembedding: Reembedding | null;
  pauses: PauseState[];
  ignored: string[];
  inbox: number;
  hosts: { [name: string]: string };
  sessions_open: number;
  is_removed: boolean;
  remote: RemoteSummary | null;
}
export interface Step {
  stage: string;
  what: string;
}
export interface Summary {
  session: SessionState;
  title: string;
  last_at: string;
  requests: number;
  edits: number;
  files: number;
  commits: number;
  lines: SummaryLine[];
}
export interface SummaryLine {
  section: "asked" | "done" | "ended" | "handover" | "learnt" | "open";
  text: string;
  turn: string;
  part: number;
}
export interface Taken {
  accepted: number;
  duplicate: number;
  changed: number;
  refused: Refusal[];
  pool: string;
  pending: number;
  forgotten: number;
  skipped: number;
  why: "" | "disabled" | "ignored" | "paused" | "tool output";
}
export interface Tally {
  pool: string;
  kind: "edge" | "fact" | "note" | "persona" | "procedure";
  fades: boolean;
  at: number;
  mark: number;
  strength: number;
  by: { [name: string]: number };
  level: number;
  credit: number;
  uses: number;
  candidates: number;
  last: number;
  impact: number;
}
export interface TaskRated {
  kind: "task_rated";
  agent: string;
  document: string;
  turn: string;
  at: number;
  outcome?: "as_is" | "as_is_checked" | "failed" | "interrupted" | "major" | "minor" | "redo" | "refused" | "rerouted" | "running" | "silent" | "";
  perspective?: string;
}
export interface TasksJudged {
  kind: "tasks_judged";
  archive_seq: number;
  document?: string;
  tasks?: JudgedTask[];
}
export interface Taught {
  event: "taught";
  turn: string;
  at: string;
  text: string;
  path?: string;
  form?: "question" | "section";
}
export interface TestScore {
  at: number;
  test: "after" | "before" | "review";
  asked: number;
  right: number;
  known: number;
  questions: number;
}
export interface TextVectors {
  model?: string;
  vectors?: unknown[];
}
export interface TimeWindow {
  L3_default: number;
}
export interface ToIdentity {
  requires_evidence_count: number;
  min_confidence: number;
}
export interface ToPlaybook {
  requires_evidence_count: number;
  min_confidence: number;
}
export interface ToolCalled {
  event: "tool_called";
  turn: string;
  at: string;
  name: string;
  arguments?: string;
  outcome?: "error" | "ok" | "refused" | "unknown";
  said_by?: "" | "file" | "outside" | "page";
}
export interface TopicList {
  topics: RecordTopic[];
  left: number;
}
export interface TranscriptTurn {
  turn: string;
  at: string;
  who: string;
  text: string;
  cited: Citation[];
}
export interface TreeFile {
  blob: string;
  commit: string;
  author: string;
  data: unknown;
}
export interface Turns {
  document: string;
  turns: string[];
}
export interface Unhidden {
  kind: "unhidden";
  hidden: number;
  documents: string[];
  after: Shift[];
}
export interface Unknown {
  kind: "unknown";
  name?: string;
}
export interface Unused {
  record: MemoryRecord;
  given: number;
}
export interface UnusedList {
  records: Unused[];
}
export interface Updated {
  kind: "updated";
  record: MemoryRecord;
  retires?: Retirement[];
  decision: Decision;
}
export interface Version {
  seq: number;
  at: number;
  kind: string;
  why: string;
  record: MemoryRecord | null;
}
export interface Waiting {
  id: string;
  what: "conflict" | "duplicate" | "forget" | "patch" | "skill" | "skill_edit" | "skill_retire";
  record: string;
  line: string;
  state: "accepted" | "moot" | "open" | "rejected";
  by: string;
  against: string;
  against_line: string;
  label: string;
  reason: string;
  at: number;
  evidence: Span[];
  against_evidence: Span[];
  if_nothing: string;
  patch: string;
  changes: PlaybookChange[];
}
export interface WeeklyReport {
  week: string;
  since: string;
  until: string;
  before: string;
  after: string;
  seq: number;
  sections: ReportSection[];
}
export interface Wrote {
  event: "wrote";
  turn: string;
  at: string;
  text: string;
  author?: string;
  path?: string;
  own?: boolean;
  form?: "" | "commands" | "open" | "purpose" | "row";
}

/** The methods of `Client`. Each rejects with MemdError. */
export interface RequestMethods {
  /** Capture events, which are durable when this returns (W1). */
  capture(origin: Origin, events: (Said | Noted | Reworded | Wrote | Taught | ToolCalled | Returned | Committed | Checked | Planned | Interrupted | Settled | Stated | HandedOver | Reflected | ReflectionAsked | SentPart | Ran | SessionStarted | SessionEnded)[]): Promise<Taken>;
  /** Distil pending captures now. */
  distil(): Promise<Done>;
  /** Pause capture (P-2) everywhere, or in an absolute folder and below; for some seconds, or until `resume`. */
  pause(options?: { folder?: string; for_s?: number }): Promise<Pauses>;
  /** End the pause of this folder, or the one that holds everywhere. Raises NotFound. */
  resume(options?: { folder?: string }): Promise<Pauses>;
  /** List the captures that could not be distilled (P-12). */
  deadLetters(options?: { limit?: number }): Promise<DeadLetters>;
  /** Start to distil failed captures again (P-12). Raises NotFound, InvalidRequest. */
  retry(options?: { ids?: number[]; all?: boolean }): Promise<JobState>;
  /** Find the memories that answer a question, each with its source (Q2). `protocol.recall.Recall` has the fields' meanings. */
  recall(query: string, options?: { cwd?: string; pools?: string[]; repository?: Repository | null; limit?: number; budget_tokens?: number; include_retired?: boolean; explain?: boolean; as_of?: string; believed_at?: string; document?: string; keywords?: string[]; perspective?: string; agent?: string; threshold?: number; types?: string[]; by_chance?: boolean; deep?: boolean }): Promise<Recalled>;
  /** Rate an answer, named by its `recall`, or records, and tell how the task ended (T3, T4). Raises NotFound, InvalidRequest. */
  feedback(options?: { recall?: string; used?: string[]; helpful?: string[]; wrong?: string[]; failed?: boolean; outcome?: "" | "failure" | "prevented" | "success"; perspective?: string; learned?: { [name: string]: string } | null }): Promise<FeedbackTaken>;
  /** Return vectors of texts by the model that searches now (H3). */
  vectors(texts: string[]): Promise<TextVectors>;
  /** List records that were returned at least `least` times and never used (Q9). Raises NotFound. */
  neverUsed(options?: { pools?: string[]; least?: number; limit?: number }): Promise<UnusedList>;
  /** Return one record by its id or an unambiguous prefix of it, as of a time (Q12). Raises NotFound. */
  get(id: string, options?: { as_of?: string; believed_at?: string }): Promise<MemoryRecord>;
  /** Return a page of records, newest first. */
  list(options?: { pools?: string[]; kinds?: ("edge" | "fact" | "note" | "persona" | "procedure")[]; statuses?: ("active" | "archived" | "hidden" | "provisional" | "quarantined" | "retired")[]; type?: string; document?: string; key?: string; since?: string; until?: string; as_of?: string; believed_at?: string; after?: string; limit?: number }): Promise<Page>;
  /** Explain a record: its captured lines and every decision on it (R4). */
  why(id: string): Promise<Explained>;
  /** Return every version of a record (T1). Raises NotFound. */
  history(id: string): Promise<History>;
  /** List the statements about a subject in order of world time (T1). Raises InvalidRequest. */
  timeline(subject: string, options?: { cwd?: string; pools?: string[]; repository?: Repository | null; limit?: number }): Promise<RecordList>;
  /** Return the pools with their topics, or what is near a record or a thing (U4). Raises NotFound. */
  map(options?: { pools?: string[]; around?: string; hops?: number; as_of?: string; believed_at?: string; limit?: number }): Promise<MemoryMap>;
  /** Return how much was learnt and retired when, and the changes beside a time (Q12). Raises InvalidRequest. */
  rhythm(options?: { pools?: string[]; clock?: "system" | "world"; since?: string; until?: string; buckets?: number; beside?: string }): Promise<Rhythm>;
  /** Return the profile of the user, and of the project that `cwd` lies in (Q1). `due`: print it now. `recalled`: what a `prompt` recalled (Q13). */
  profile(options?: { cwd?: string; pools?: string[]; repository?: Repository | null; budget_tokens?: number; agent?: string; document?: string; delivery?: "per_turn" | "sticky"; trigger?: "clear" | "compact" | "resume" | "start" | "turn"; prompt?: string; as_of?: string; believed_at?: string; assuming?: MemoryRecord[] }): Promise<ProfileText>;
  /** Report that a revision of the profile, or of recalled lines (`recall`), was printed into a session. */
  printed(document: string, rev: string, options?: { recall?: string }): Promise<PrintNoted>;
  /** List the exact texts that agents were given, newest first, and why. Raises NotFound. */
  injected(options?: { session?: string; limit?: number }): Promise<Injections>;
  /** Return the context package: L1 in full, L2 by tag and project, L3 of `days`, 0 for the policy's (Q11). */
  context(options?: { cwd?: string; pools?: string[]; repository?: Repository | null; agent?: string; tags?: string[]; days?: number; as_of?: string; believed_at?: string }): Promise<ContextPackage>;
  /** Keep what an agent writes at a session's end for the next one (C1). Raises NotFound, InvalidRequest. */
  handOver(document: string, options?: { at?: string; done?: string[]; decided?: string[]; open?: string[]; closed?: string[] }): Promise<HandoverTaken>;
  /** Take what the agent of a session found worth remembering in it (W4). Raises NotFound, InvalidRequest. */
  reflect(document: string, options?: { at?: string; title?: string; statements?: Statement[]; open?: string[]; learnings?: ReflectedLearning[] }): Promise<Reflection>;
  /** Return whether the agent of a session should reflect (W4); with `now`, once a session, the question. */
  askReflection(document: string, options?: { now?: boolean }): Promise<ReflectionQuestion>;
  /** Begin to share a project's memory, or change how (H1). `mark`: the name by which a hub knows the pool. Raises NotFound, InvalidRequest. */
  openShare(pool: string, options?: { address?: string; mark?: string; name?: string; new_sessions?: boolean | null; dry_run?: boolean }): Promise<ShareState>;
  /** End sharing a project's memory. Raises NotFound. */
  closeShare(pool: string, options?: { withdraw?: boolean }): Promise<ShareState>;
  /** Return the shared projects with their authors. */
  shares(options?: { pools?: string[] }): Promise<ShareList>;
  /** List records of a shared project that the user has not decided on. Raises NotFound. */
  reviewShare(pool: string, options?: { limit?: number }): Promise<ShareReview>;
  /** Share records with the next push, or keep them from ever going. Raises NotFound, InvalidRequest. */
  offerRecords(pool: string, options?: { ids?: string[]; all?: boolean; keep?: string[] }): Promise<Outbox>;
  /** List what the next push would send, and what waits. Raises NotFound. */
  shareOutbox(pool: string): Promise<Outbox>;
  /** Render the own partition, after offering what is due; `earlier`: as far as an earlier remote has it. Raises NotFound, InvalidRequest. */
  prepareShare(pool: string, options?: { first?: number; dry_run?: boolean; earlier?: string }): Promise<PreparedShare>;
  /** Note what the remote has of the own partition. Raises NotFound, InvalidRequest. */
  noteDelivered(pool: string, partition: string, epoch: number, count: number, options?: { commit?: string; earlier?: string }): Promise<ShareState>;
  /** Note until when a hub lets this home read what others share (A1). Raises NotFound, InvalidRequest. */
  noteLease(pool: string, options?: { subject?: string; until?: number; withheld?: string[] }): Promise<ShareState>;
  /** Begin a new own partition, because another device writes the present one too. Raises InvalidRequest. */
  renewPartition(pool: string, head: unknown, options?: { hashes?: unknown[] }): Promise<ShareState>;
  /** Take what another author's partition has new (H2). Raises NotFound. */
  takePartition(pool: string, head: unknown, options?: { hashes?: unknown[]; segments?: SegmentData[]; dry_run?: boolean }): Promise<PartitionTaken>;
  /** Trust or mute an author, or take that back. Raises NotFound. */
  judgeAuthor(pool: string, author: string, standing: "muted" | "new" | "trusted"): Promise<ShareState>;
  /** Retire shared records, and tell everybody with the next push. Raises NotFound, InvalidRequest. */
  disputeRecords(ids: string[], options?: { why?: string }): Promise<Outbox>;
  /** List what authors shared, newest first. Raises NotFound. */
  shareLog(pool: string, options?: { author?: string; limit?: number }): Promise<ShareLog>;
  /** Choose the remote model that may read ended sessions (W4). Raises InvalidRequest. */
  useRemote(provider: string, model: string, options?: { dialect?: "anthropic" | "openai" | ""; trusted?: boolean }): Promise<RemoteState>;
  /** Switch the remote model off, also during a call. */
  stopRemote(): Promise<RemoteState>;
  /** Consent that the chosen model reads a pool's sessions, or withdraw it. Raises InvalidRequest, NotFound. */
  consentRemote(pool: string, options?: { days?: number; private?: boolean; withdraw?: boolean }): Promise<RemoteState>;
  /** Return the exact bodies that memd would send of a session, or sent in a call. Raises NotFound. */
  previewRemote(options?: { session?: string; call?: string }): Promise<RemotePreview>;
  /** Return the chosen remote model, the consents, today's tokens and the last calls. */
  remote(): Promise<RemoteState>;
  /** Return where a project or an agent stands: open items, decisions, what to watch, last sessions (C1). */
  state(options?: { cwd?: string; pools?: string[]; repository?: Repository | null; agent?: string }): Promise<CurrentState>;
  /** Add items to the current state, close or reword some (C1). `if_rev`: the revision that the user saw. Raises NotFound, InvalidRequest. */
  changeState(options?: { cwd?: string; pools?: string[]; repository?: Repository | null; at?: string; agent?: string; add?: string[]; watch?: string[]; close?: string[]; reword?: Rewording[]; if_rev?: string }): Promise<CurrentState>;
  /** Return whether the documents behind records have changed; `stale`: only changed and gone ones (C3). Raises NotFound. */
  links(options?: { cwd?: string; pools?: string[]; repository?: Repository | null; ids?: string[]; stale?: boolean }): Promise<LinkList>;
  /** Return drafts of skills, which are procedures that sessions repeated with success (K1). `name`: of that name or beginning of an id; `known`: also those that the project's own instructions spell out. */
  skills(options?: { cwd?: string; pools?: string[]; repository?: Repository | null; name?: string; everywhere?: boolean; known?: boolean }): Promise<SkillList>;
  /** Store that the user placed a draft as a file, or that a skill's file has other bytes (K2). Raises NotFound, InvalidRequest. */
  placeSkill(name: string, path: string, sha: string, options?: { cwd?: string; pools?: string[]; repository?: Repository | null; by?: "offered" | "placed" | "tuned" | "user"; then?: "offered" | "placed" | "tuned" | "user" }): Promise<PlacedSkill>;
  /** Store that the user took a placed skill away (K2). Raises NotFound. */
  retireSkill(name: string, options?: { cwd?: string; pools?: string[]; repository?: Repository | null }): Promise<PlacedSkill>;
  /** Put drafts of skills, and placed ones to retire, in the inbox, as memd does each week (K1, K2). */
  proposeSkills(options?: { dry_run?: boolean }): Promise<SkillProposals>;
  /** Return what mends a placed skill's file, or edits that held-out work confirms (K3). Raises NotFound, InvalidRequest. */
  tuneSkill(name: string, options?: { cwd?: string; pools?: string[]; repository?: Repository | null; read_by_others?: boolean }): Promise<SkillTuning>;
  /** Return the text of a placed skill that the others of its project may read (K4). Raises NotFound, InvalidRequest, Refused. */
  shareSkill(name: string, options?: { cwd?: string; pools?: string[]; repository?: Repository | null; description?: string }): Promise<SharedSkill>;
  /** Return what became of an agent's tasks (O2). Raises NotFound. */
  explainAgent(agent: string): Promise<AgentOutcomes>;
  /** Store what became of an agent's task, or take it back without `outcome` (O2). Raises NotFound, InvalidRequest. */
  rateTask(agent: string, session: string, options?: { turn?: string; outcome?: "as-is" | "failed" | "major" | "minor" | "redo" | ""; perspective?: string }): Promise<AgentOutcomes>;
  /** Return the agents for a task, the best one first (O1). */
  rankAgents(task: string, options?: { agents?: string[] }): Promise<AgentRanking>;
  /** Start to weigh items: the job's report has the `worth` and the `topics` of each, or one of them (W12). */
  weighItems(texts: string[], options?: { by?: "both" | "topic" | "worth" }): Promise<JobState>;
  /** Start to summarise these turns of a document, in this order (W12). Raises NotFound. */
  summariseDocument(document: string, options?: { turns?: string[] }): Promise<JobState>;
  /** Return a passage of a summary, by default of the newest one in scope (W12). Raises NotFound. */
  detail(number: number, options?: { cwd?: string; pools?: string[]; repository?: Repository | null; summary?: string }): Promise<Detail>;
  /** Return what the memories in scope are about (W12). */
  topics(options?: { cwd?: string; pools?: string[]; repository?: Repository | null; most?: number }): Promise<TopicList>;
  /** Reword a record; the id stays. */
  edit(id: string, text: string, options?: { at?: string; dry_run?: boolean }): Promise<Remembered>;
  /** Replace a wrong record by a right one; `since`: the old one was right until then (T1). Raises NotFound, InvalidRequest. */
  correct(id: string, text: string, options?: { at?: string; since?: string; dry_run?: boolean }): Promise<Remembered>;
  /** Pin or unpin a record. A pinned record stands first in the profile, and no statement retires it by itself (R9, T13); a principle is in every answer (Q8). Raises InvalidRequest where its layer is full. */
  pin(id: string, options?: { pinned?: boolean; principle?: boolean; playbook?: boolean; dry_run?: boolean }): Promise<Remembered>;
  /** Set who the user or an agent is, or the tone; "" removes it (R1). Raises InvalidRequest. */
  setPersona(block: "identity" | "tone", text: string, options?: { at?: string; agent?: string; add?: boolean }): Promise<Remembered>;
  /** Set when to look at a record again, and what would change it (R5). Raises NotFound, InvalidRequest. */
  planReview(id: string, options?: { every_days?: number | null; change_condition?: string | null }): Promise<Remembered>;
  /** Set what a record teaches under a perspective; "" removes it (R7). Raises NotFound, InvalidRequest. */
  learn(id: string, perspective: string, text: string): Promise<Remembered>;
  /** Add files, addresses and commits to a record as evidence, or remove them (R5). Raises NotFound, InvalidRequest. */
  addEvidence(id: string, refs: string[], options?: { note?: string; remove?: boolean }): Promise<Remembered>;
  /** Start to retract sessions; `redo` brings them back. */
  undo(names: string[]): Promise<JobState>;
  /** Start to bring back the sessions that `undo` retracted. */
  redo(names: string[]): Promise<JobState>;
  /** Ask the user to forget records; with `hide` no read shows them until the user decides. Raises NotFound. */
  proposeForget(ids: string[], options?: { by?: string; hide?: boolean }): Promise<Proposed>;
  /** List the proposals that the user has to decide (T13). */
  inbox(options?: { all?: boolean; limit?: number }): Promise<Inbox>;
  /** Decide a proposal, and those of `ids`, all or none; an accepted deletion is a job. Raises NotFound, InvalidRequest. */
  decide(accept: boolean, options?: { id?: string; ids?: string[]; dry_run?: boolean }): Promise<Decided>;
  /** Take the decision on a proposal back. Raises NotFound, InvalidRequest. */
  reopen(id: string): Promise<Decided>;
  /** End a task (T6): fade the records of these pools, by default all, and archive the weakest. */
  sleep(options?: { pools?: string[]; dry_run?: boolean }): Promise<Slumbered>;
  /** List the records that will be archived soon unless somebody uses them (T9). */
  fading(options?: { cwd?: string; pools?: string[]; repository?: Repository | null; limit?: number; after_days?: number }): Promise<FadingList>;
  /** Say that records are right, or wrong, or take that back (T1, T8). Raises NotFound, InvalidRequest. */
  confirm(ids: string[], options?: { right?: boolean; undo?: boolean; dry_run?: boolean }): Promise<Judgement>;
  /** Make archived records active again (T7). Raises NotFound, InvalidRequest. */
  restore(ids: string[]): Promise<RecordList>;
  /** List the records that `forget` would delete. Raises InvalidRequest without exactly one scope. */
  previewForget(options?: { ids?: string[]; query?: string; session?: string; source?: string; letter?: number }): Promise<ForgetPlan>;
  /** Start to forget for good (T10). Raises InvalidRequest without exactly one scope. */
  forget(options?: { ids?: string[]; query?: string; session?: string; source?: string; letter?: number }): Promise<JobState>;
  /** Start to reclaim the disk space of removed entries (P-20). */
  compact(): Promise<JobState>;
  /** Start to scan stored data with the present rules for secrets. Without `dry_run` a placeholder replaces each secret for good (P-18). */
  scan(options?: { dry_run?: boolean }): Promise<JobState>;
  /** List every pool with its number of records. */
  pools(): Promise<PoolList>;
  /** Return the pool of a folder and the evidence for it (P3). */
  whyScope(cwd: string, options?: { repository?: Repository | null }): Promise<Scope>;
  /** Bind a folder to a pool; without one, to a new pool of its own. Raises NotFound. */
  bindScope(cwd: string, options?: { at?: string; pool?: string; title?: string; join?: boolean; repository?: Repository | null }): Promise<Bound>;
  /** Move records into another pool, all or none. Raises NotFound. */
  moveRecords(ids: string[], options?: { pool?: string; copy?: boolean; visibility?: "organisation" | "private" | "shared" | ""; dry_run?: boolean }): Promise<RecordsMoved>;
  /** Leave a project, or come back to it (P4). Raises NotFound. */
  leave(options?: { at?: string; cwd?: string; pool?: string; back?: boolean; repository?: Repository | null }): Promise<Left>;
  /** Open an agent's own pool, or change its role, perspectives (P5) and prompt (O5). Raises InvalidRequest. */
  openAgent(agent: string, options?: { role?: string; perspectives?: string[]; prompt?: string }): Promise<Agent>;
  /** Return what memd keeps of an agent: role, perspectives, prompt (O5) and courses. Raises NotFound. */
  agent(agent: string): Promise<AgentState>;
  /** Let an agent read a course, or what changed in it (O3). Raises NotFound, InvalidRequest, Forgotten. */
  teach(agent: string, title: string, chapters: CourseChapter[]): Promise<CourseTaught>;
  /** Ask an agent's memory what is due in its courses (O3). Raises NotFound. */
  askCourses(agent: string): Promise<CoursesAsked>;
  /** Return an agent's courses with their tests and open gaps (O3). Raises NotFound. */
  school(agent: string): Promise<School>;
  /** Ask no more questions of a course; its sections may fade (O3). Raises NotFound. */
  closeCourse(agent: string, course: string): Promise<CourseState>;
  /** Sign a pass (A1); with `back`, show again the records of revoked `sources`. Raises NotFound. */
  grant(options?: { subject?: string; pools?: string[]; sources?: string[]; for_s?: number; back?: boolean }): Promise<PassGranted>;
  /** Void a pass, or hide everything that was derived from a source (A3). Raises NotFound. */
  revoke(options?: { id?: string; source?: string }): Promise<Revocation>;
  /** List every grant and every revoked source. */
  grants(): Promise<Grants>;
  /** List sessions, the latest first; of one host, or those that have not ended. */
  sessions(options?: { host?: string; is_open?: boolean; limit?: number }): Promise<SessionPage>;
  /** Return a session's contents and the records it produced. Raises NotFound. */
  session(id: string): Promise<SessionOutcome>;
  /** Return what a session asked, did, taught and left open, in its own words (C2). Raises NotFound. */
  summary(id: string): Promise<Summary>;
  /** Return the sessions that have some words in their title or their turns, best first (C2). */
  findSessions(words: string, options?: { host?: string; limit?: number }): Promise<SessionsFound>;
  /** Return turns of a session in order, around one or from the first, with the records that cite them. Raises NotFound. */
  transcript(id: string, options?: { around?: string; limit?: number }): Promise<SessionTurns>;
  /** List every setting with its value and its source (U6). */
  settings(): Promise<SettingList>;
  /** Write a setting into memd.toml, or remove it there, and apply it. Raises BadConfig. */
  putSetting(name: string, options?: { value?: string | null }): Promise<SettingList>;
  /** Return what the daemon did after event `after`. Where that is nothing, wait for it this long (U9). */
  activity(options?: { after?: number; limit?: number; wait_ms?: number }): Promise<ActivityPage>;
  /** Return the daemon's last activity, its backlog and its failures (U6). */
  status(): Promise<StatusText>;
  /** Stop the daemon after it has finished the acknowledged work. */
  stop(): Promise<Done>;
  /** Return the operations after `after`, in order (W8). Where there are none, wait for them this long (U9). */
  journal(options?: { after?: number; limit?: number; wait_ms?: number }): Promise<Journaled>;
  /** List the patches of a pool, by day (G2). Raises NotFound. */
  patches(pool: string): Promise<PatchList>;
  /** Return a patch of this home, or of a proposal, as a file. Raises NotFound. */
  patch(pool: string, patch: string): Promise<PatchBytes>;
  /** Turn a proposal into a patch file that others decide. Raises NotFound, InvalidRequest. */
  sendPatch(pool: string, proposal: string): Promise<PatchBytes>;
  /** Make one patch of the playbook's records that no patch states yet. Raises NotFound. */
  publishPlaybook(pool: string, options?: { dry_run?: boolean }): Promise<PatchBytes>;
  /** Take the new patches of a committed tree (G2). Raises NotFound, InvalidRequest. */
  takePatches(pool: string, options?: { files?: TreeFile[]; present?: string[] | null; by_user?: boolean; dry_run?: boolean }): Promise<PatchesTaken>;
  /** Let memd read a project's `.pi` folder, or take that back. Raises NotFound. */
  trustPi(pool: string, options?: { trusted?: boolean }): Promise<PatchList>;
  /** Propose what a pool's playbook should take in, merge, review or give up (G3). Raises NotFound. */
  curate(options?: { pool?: string; dry_run?: boolean }): Promise<Curation>;
  /** Return the policy of a pool, or of a folder's project. Raises NotFound. */
  policy(options?: { pool?: string; cwd?: string }): Promise<PolicyState>;
  /** Return what these bytes would be as a policy file; nothing changes. Raises NotFound. */
  checkPolicy(data: unknown, options?: { pool?: string; cwd?: string }): Promise<PolicyState>;
  /** Let the policy file of this digest loosen what it asks for. Raises NotFound, InvalidRequest. */
  acceptPolicy(digest: string, options?: { pool?: string; cwd?: string }): Promise<PolicyState>;
  /** Return the report of an ISO week such as 2026-W47, of the present one for "" (G6). Raises InvalidRequest. */
  report(options?: { week?: string }): Promise<WeeklyReport>;
  /** Return the progress of a job. */
  job(id: string): Promise<JobState>;
  /** Start the check of all stored data. */
  verify(): Promise<JobState>;
  /** Start to rebuild a projection, or all of them (U3). */
  rebuild(options?: { name?: string }): Promise<JobState>;
  /** List the models, and the progress of a change to another one (P-14). */
  models(): Promise<ModelList>;
  /** Start to check and select the model in an absolute path, or the package's own (P-14). */
  useModel(folder: string): Promise<JobState>;
  /** Start a backup into an absolute path, or into memd's own folder, which retains the newest `keep`. */
  backup(options?: { to?: string; keep?: number }): Promise<JobState>;
  /** List the finished backups in a folder, by default memd's own. */
  backups(options?: { folder?: string }): Promise<BackupList>;
  /** Start the archive's retention (T10). */
  expire(options?: { dry_run?: boolean }): Promise<JobState>;
  /** Return the bytes on disk by part. */
  diskUsage(): Promise<DiskUse>;
  /** Return a page of records with their history (P-25); `shareable`: only those that may leave. */
  export(options?: { pools?: string[]; after?: string; limit?: number; shareable?: boolean }): Promise<ExportPage>;
  /** Add exported records, which are durable when this returns. */
  importRecords(records: ExportedRecord[], options?: { sessions?: SessionOpened[]; pools?: PoolOpened[] }): Promise<RecordsImported>;
}
