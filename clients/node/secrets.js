// Written from protocol/redact.py by `python -m memd.clients.node`; a test compares the two.
// Each rule: its name, its regex, and the lower-case clues, one of which a matching text contains.
export const RULES = [
  ["private-key", /-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/gsu, ["-----begin "]],
  ["aws-access-key", /\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b/gsu, ["akia", "asia", "abia", "acca"]],
  ["github-token", /\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})/gsu, ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"]],
  ["gitlab-token", /\bglpat-[A-Za-z0-9_-]{20,}/gsu, ["glpat-"]],
  ["slack-token", /\bxox[abeoprs]-[A-Za-z0-9-]{10,}/gsu, ["xox"]],
  ["stripe-key", /\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}/gsu, ["sk_", "rk_"]],
  ["model-api-key", /\bsk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{20,}/gsu, ["sk-"]],
  ["google-api-key", /\bAIza[A-Za-z0-9_-]{35}/gsu, ["aiza"]],
  ["npm-token", /\bnpm_[A-Za-z0-9]{36}/gsu, ["npm_"]],
  ["pypi-token", /\bpypi-[A-Za-z0-9_-]{50,}/gsu, ["pypi-"]],
  ["jwt", /\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}/gsu, ["eyj"]],
  ["bearer-token", /(?:\b[Bb][Ee][Aa][Rr][Ee][Rr]\s+)(?<s1>[A-Za-z0-9._~+\/-]{20,}=*)/gsu, ["bearer"]],
  ["url-password", /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s:\/@]{1,100}:(?<s2>[^\s:\/@]{3,200})@/gsu, ["://"]],
  ["assigned-secret", /(?:\b[A-Za-z0-9_.-]{0,40}(?:[Pp][Aa][Ss][Ss][Ww][Oo][Rr][Dd]|[Pp][Aa][Ss][Ss][Ww][Dd]|[Ss][Ee][Cc][Rr][Ee][Tt]|[Tt][Oo][Kk][Ee][Nn]|[Aa][Pp][Ii][_-]?[Kk][Ee][Yy])["']?\s{0,3}[:=]\s{0,3})["'](?<s3>[^"'\s]{8,200})["']/gsu, ["password", "passwd", "secret", "token", "key"]],
];
