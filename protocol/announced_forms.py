"""The commands and other forms that hold a secret, and the clues by which memd looks for them: data alone.

`announced_secrets.py` explains how they are used. In a list of clues, `_` in one stands for a space.
"""

from __future__ import annotations

from .announced_words import NOUNS

FORMS: tuple[tuple[str, str, str], ...] = (
    (
        "token",
        "pat= pat: pat_= pat_: pat\": pat': pat_is",
        r"(?:\b(?:[A-Z][A-Z0-9]*_)*PAT|(?i:\b(?:github|gitlab|gitea|gh|gl|azure|azdo|ado|devops|jira|bitbucket|docker|"
        r"ghcr|databricks|figma|airtable|personal|access)[_-]?pat))[\"']?(?:\s?[=:]|\sis)\s?[\"']?"
        r"(?P<w>[A-Za-z0-9][\w~.+/=!@#%&*?-]{5,})",
    ),
    ("password", "mysql mariadb", r"(?:\s|^)-p{}"),
    (
        "password",
        "login",
        r"\b(?:docker|podman|buildah|skopeo|nerdctl|oras|crane|helm|argocd|rancher|az|oc)\s(?:.*?\s)?login\b"
        r".*?\s-p(?:\s+|=)?{}",
    ),
    ("password", "htpasswd", r"\s-[A-Za-z]*b[A-Za-z]*\s+(?:-\S+\s+)*(?:[^\s-]\S*\s+){1,2}{}[ \t]*(?:$|[|;&)`\n\"'])"),
    ("password", "pass:", r"pass(?:in|out|word)?\s+[\"']?pass:(?P<u>[^\s\"']+)"),
    ("password", "7z rar unrar", r"\s-p{}"),
    ("password", "ldap", r"\s-[ws]\s+{}"),
    ("password", "sqlplus", r"\s[\"']?[A-Za-z_]\w*/(?P<u>[^\s\"'/@]+)(?:@|[\"'\s]|$)"),
    ("password", "wpa_passphrase", r"wpa_passphrase\s+(?:\"[^\"]*\"|'[^']*'|\S+)\s+{}"),
    ("password", "add-generic-password add-internet-password", r"\b(?:add|find)-\w+-password\b.*?\s-w\s+{}"),
    ("password", "xfreerdp wfreerdp", r"\s/p:{}"),
    ("token", ":_auth", r":_auth\s?=\s?{}"),
    ("secret", "aws_configure", r"configure\s+set\s+\S*(?:secret|token)\S*\s+{}"),
    ("password", "net_user", r"\bnet\s+user\s+\S+\s+(?P<u>[^\s/*]\S*)\s+/add"),
    ("password", "net_use", r"\bnet\s+use\s+.*?\s(?P<u>[^\s/*\\]\S*)\s+/user:"),
    (
        "password",
        "sudo chpasswd -stdin --with-token --passphrase-fd kinit smbpasswd passwd data-file data-binary "
        "secret_set secret_put secret_create secrets_set secrets_put secrets_create secrets_add variable_set env_add "
        "pass_insert luksopen luksformat",
        r"\b(?:echo|printf)\s+(?:-[neE]+\s+)*(?:[\"']%s(?:\\{1,2}n)?[\"']\s+)?{}[\"']?\s*\|.*?"
        r"(?:\bsudo\s+(?:-\S+\s+)*-[A-Za-z]*S|\bchpasswd|stdin\b|--with-token|-fd\b|\bkinit|\bsmbpasswd|\bpasswd\b"
        r"|\b(?:secrets?|variable|env)\s+(?:set|put|create|add|versions\s+add)\b"
        r"|data-file[= ]|\bpass\s+insert|luks(?:Open|Format))",
    ),
    (
        "password",
        "sudo chpasswd -stdin --with-token --passphrase-fd kinit smbpasswd data-file secret_set secret_put "
        "secret_create secrets_set secrets_put secrets_create secrets_add variable_set env_add luksopen luksformat",
        r"(?:\bsudo\s+(?:-\S+\s+)*-[A-Za-z]*S|\bchpasswd|stdin\b|--with-token|-fd\b|\bkinit|\bsmbpasswd|data-file[= ]"
        r"|\b(?:secrets?|variable|env)\s+(?:set|put|create|add)\b|luks(?:Open|Format)).*?"
        r"(?:<<<\s*|<\(\s*(?:echo|printf)\s+(?:-[neE]+\s+)?){}",
    ),
    (
        "password",
        "identified",
        r"(?i:identified\s+(?:with\s+\S+\s+)?(?:by|as))\s+(?:password\s+)?"
        r"(?:\\?\"(?P<s>[^\"\\\n]+)|'(?P<t>[^'\n]+)|(?P<w>[^\s\"'`;,]+))",
    ),
    (
        "password",
        "auth login",
        r"(?:[Aa]uth|[Ll]ogin)\w*\s*[=:]?\s*[\[(]\s*[\"'][^\"'\n]{1,80}[\"']\s*,\s*(?:\"(?P<s>[^\"\n]+)|'(?P<t>[^'\n]+))[\"']",
    ),
    ("password", 'send_" send_--', r"\bsend\s+(?:--\s+)?\\?\"(?P<w>[^\s\"\\]+)\\{1,2}[rn]"),
    ("password", "securestring", r"ConvertTo-SecureString\s+(?:-String\s+)?{}"),
    ("password", "@tcp( @unix(", r"(?:^|[\s\"'`=])[A-Za-z_][\w.-]*:(?P<u>[^\s\"'`]+)@(?:tcp|unix)\("),
    (
        "password",
        "://",
        r"[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s:/@\"'<>`]{0,100}:(?P<u>[^\s\"'<>`]+)@(?:[A-Za-z0-9]|\[|_|\.|$)",
    ),
    ("token", "://", r"https?://(?P<u>[^\s:/@\"'<>`?#]{8,200})@[A-Za-z0-9]"),
    ("webhook", "hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<u>[\w/]{20,})"),
    ("webhook", "/webhooks/", r"/api/webhooks/\d{5,20}/(?P<u>[\w-]{4,100})"),
    ("password", ":5432:", r"(?:^|[\s\"'`])[\w.*-]+:(?:\d{2,5}|\*):[\w*.-]+:[\w*.@-]+:(?P<u>[^\s\"'`]+)"),
    ("password", "p: p=", r"\bu(?:ser(?:name)?|sr)?\s?[:=]\s?[^\s,;/|]+[\s,;/|]+p\s?[:=]\s?{}"),
    (
        "login",
        "login log_in logged_in sign_in signed_in credential creds zugangsdaten anmeld identifiants connecte-toi "
        "connectez-vous "
        "credenciales credenziali credenciais inloggegevens accede entra",
        r"(?:\b(?:with|as|mit|als|avec|con|com|met|for|by|ist|is|are|sind|sont|son|zijn)\b|[:=(]|credentials|login|creds)"
        r"(?=\s*[\"'`(]?(?P<n>[A-Za-z][\w.@+-]{1,60})(?:\s?/\s?|:\s?|\s\|\s)(?P<u>[^\s\"'`|/][^\s\"'`|]*))",
    ),
)
"""Kind, clues, and what holds the secret, of which a clue is a part; `{}` stands for an argument, `_` in a clue for a
space. The clue `:5432:` stands for any port. A `login` counts only if the value can be no word."""

COMMANDS: tuple[tuple[str, str, str, str], ...] = (
    ("password", "redis-cli|valkey-cli|keydb-cli", "-a", ""),
    ("password", "mongo*|cqlsh|mycli|influx|cypher-shell|twine|rdesktop|hydra|evil-winrm|snowsql", "-p", ""),
    ("password", "crackmapexec|netexec|nxc|rabbitmqadmin|ncftp*", "-p+", ""),
    ("token", "doctl|hcloud", "-t --access-token", ""),
    ("password", "etcdctl", "--user:", "etcdctl"),
    ("password", "sshpass", "-p+", ""),
    ("password", "useradd|usermod|unlock-keychain", "-p", ""),
    ("password", "ssh-keygen", "-N+ -P+", ""),
    ("password", "openssl", "-k -K", ""),
    ("password", "zip|unzip|sqlcmd|mosquitto_*|ipmitool", "-P+", ""),
    ("password", "snmp*", "-A -X -c?", ""),
    ("password", "swaks", "-ap", ""),
    (
        "password",
        "keytool|jarsigner",
        "-storepass -keypass -new -deststorepass -srcstorepass -destkeypass -srckeypass",
        "",
    ),
    ("password", "curl", "-u+: -U+: --user: --proxy-user: -E+: --cert: --proxy-cert:", ""),
    ("cookie", "curl", "-b+ --cookie", ""),
    (
        "password",
        "http|https|httpie|xh|xhs",
        "-a: --auth:",
        "http_ https_ httpie xh_-a xh_get xh_post xh_put xh_delete xh_patch",
    ),
    ("token", "http|https|xh|xhs bearer", "-a", "http_ https_ xh_-a"),
    ("password", "redis-cli AUTH", "1", "redis-cli"),
    ("password", "smbclient|smbget|smbmap|rpcclient", "-U+%", ""),
    ("password", "lftp", "-u+,", ""),
    ("password", "rabbitmqctl add_user|change_password|authenticate_user", "2", "rabbitmqctl"),
    ("password", "rclone obscure", "1", "rclone"),
    ("password", "* reset-admin-password", "1", "reset-admin-password"),
    ("password", "* http-basic.*", "2", "http-basic"),
    ("password", "qpdf --encrypt", "1 2", "qpdf"),
    ("password", "bw|rbw login", "2?", ""),
    ("password", "bw|rbw unlock", "1?", ""),
    ("password", "* login", "-p? --pass?", "login"),
    (
        "token",
        "vault|cargo|wandb|npm|hf|huggingface-cli|netlify|vercel|fly|railway|doppler|snyk|neptune|prefect|supabase|"
        "replicate|turso|scw|sentry-cli login",
        "1?",
        "",
    ),
    ("token", "* auth|config add-authtoken|authtoken", "1", "authtoken"),
    ("token", "ngrok authtoken", "1", "authtoken"),
    ("token", "snyk|heroku|codecov auth|auth:token", "1?", "snyk_auth auth:token"),
    ("token", "* config pypi-token.*|github-oauth.*|gitlab-token.*", "1", "pypi-token github-oauth gitlab-token"),
    ("token", "npm|yarn|pnpm set *authToken", "1", "_authtoken npmauthtoken"),
    ("token", "consul", "-token", ""),
    ("secret", "mc alias set", "3 4", ""),
    ("secret", "mc config host add", "3 4", "mc_config"),
    ("secret", "kubectl|oc|k create secret", "--from-literal=", "create_secret from-literal"),
    ("secret", "* keyvault secret set", "--value", "keyvault"),
    ("secret", "* put-parameter", "--value", "put-parameter"),
    (
        "secret",
        "* secretsmanager create-secret|put-secret-value|update-secret",
        "--secret-string --secret-binary",
        "secretsmanager",
    ),
    (
        "secret",
        "* secret|secrets|variable|variables|env set|put|add|create|update",
        "--value --body --data -b+",
        "secret_set secrets_set secret_put secrets_put secret_add secrets_add secret_create secrets_create "
        "secrets_update variable_set variables_set env_add env_set gh_secret gh_variable",
    ),
    (
        "secret",
        "* secret|secrets set|put|add|create|update|import",
        "=",
        "secret_set secrets_set secret_put secrets_put secret_add secrets_add secret_create secrets_create "
        "secrets_update secrets_import",
    ),
    (
        "secret",
        "* secret|secrets|user-secrets|variable|variables set|put|add",
        "2?",
        "secret_set secrets_set secret_put secrets_put user-secrets variable_set variables_set",
    ),
    ("secret", "* secret:create|secret:set|secrets:set", "--value", "secret:create secret:set secrets:set"),
    (
        "secret",
        "* *config:set|config:add|env:set|secrets:set|secret:set|variables:set|setenv",
        "=? 2?",
        "config:set config:add env:set secrets:set secret:set variables:set eb_setenv",
    ),
    ("secret", "* appsettings|variables|env|app-settings set|add", "=?", "appsettings variables_set env_set"),
    ("secret", "railway variables", "--set=", ""),
    ("secret", "wrangler", "--var:", ""),
    ("secret", "vault kv|write put|patch|*/*", "=", "vault_kv vault_write"),
    ("secret", "ansible-vault encrypt_string", "1?", "encrypt_string"),
    ("secret", "consul|etcdctl put", "2?", "consul_kv etcdctl"),
    ("secret", "chamber write", "3?", "chamber_write"),
    ("secret", "credstash put", "2?", "credstash"),
    ("secret", "pulumi config set", "2?", "pulumi_config"),
)
"""Kind, command, arguments and clues; without clues, its first two words are its clues. A command is words with
alternatives; other words may stand between them, and `*` stands for any characters of a word. An argument is the one
behind an option (`-p`), what follows a name and a sign in it (`-u:`, `--from-literal=`), the one at a place behind the
command (`2`; with `?`, those from there on), or all of the form NAME=VALUE (`=`). With `+`, an option and its argument
may be one word; with `?`, the value counts only if it can be no word."""

PROBES: dict[str, str] = {
    "pass": r"pass(?:[^a-z).;}]|$)",
    "key": "",
    "pw": r"pw(?:[^a-z).,;}]|$)",
    "pin": "pin[^a-z]",
    "mdp": "mdp[^a-z]",
    "sig": "[?&;-]sig=",
    "signature": "[?&;-]signature=",
    "token": r"token(?:[^s).;}]|$)",
    "cookie": r"cookie[\"'` ]{0,2}[:=,]",
    "clef": "clef ",
    "clé": "clé ",
    "clave": "clave ",
    "chiave": "chiave ",
    "chave": "chave ",
    "login(": r"login\([\"']",
    "auth": r"auth\s?[=:]?\s?[\[(]\s?[\"']",
    "://": "://[^\\s/\"'<>`]*@",
    ":5432:": "|".join(rf":{first}:[\w*.-]*:" for first in (r"\*", *(rf"{digit}\d{{3,4}}" for digit in range(10)))),
    "p:": r"\bp:",
    "p=": r"\bp=",
    "psk": "psk(?:[^a-z]|$)",
    "http ": r"\bhttp(?: [^\n]*)? (?:-a|--auth)[ =]",
    "https ": r"\bhttps(?: [^\n]*)? (?:-a|--auth)[ =]",
}
"""What stands wherever a clue counts, for those that other words contain."""


def _clues_of(command: str) -> str:
    """The first two words of a command in each combination, or its only word."""
    first, second, *_ = [word.replace("*", "").split("|") for word in command.split()] + [[""]]
    return " ".join(f"{word}_{other}" if other else word for word in first for other in second)


COMMAND_CLUES: tuple[str, ...] = tuple(clues or _clues_of(command) for _, command, _, clues in COMMANDS)
"""The clues of each command."""

_WORDS = {
    word
    for text in (*NOUNS.values(), *(clues for _, clues, _ in FORMS))
    for clue in text.split()
    for word in (clue, clue.replace("_", " "))
    if clue != ":5432:"
}
CLUES = tuple(
    sorted(
        _WORDS.union(clue.replace("_", " ") for clues in COMMAND_CLUES for clue in clues.split()),
        key=lambda word: (len(word), word),
    )
)
"""All nouns and clues, the shortest first. A text without any of them and without a port announces nothing."""
