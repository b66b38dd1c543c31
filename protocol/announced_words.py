"""The words, flags, phrases and exceptions by which memd recognises that a secret follows: data alone.

`announced_secrets.py` explains how they are used.
All words are in lower case. A list in a text is separated by spaces; `_` in a phrase stands for a space.
"""

from __future__ import annotations

NOUNS: dict[str, str] = {
    "password": "password passwort passphrase passwd passcode passwordphrase kennwort wachtwoord contraseña contrasena "
    "contrasenya senha motdepasse mot_de_passe palavra-passe palavra_passe palavrapasse parola_d'ordine zugangscode "
    "requirepass masterauth masterpass pincode mdp pass pword pswd psw pwd pw pin pass_word pass-word psk "
    "hasło hasła hasłem haslo heslo heslem lösenord lösenordet passord passordet adgangskode adgangskoden kodeord "
    "kodeordet пароль пароля паролем паролю şifre şifrem şifresi şifreniz mật_khẩu kata_sandi salasana jelszó "
    "密码 密碼 口令 パスワード 暗証番号 비밀번호 암호",
    "secret": "secret geheimnis secreto segredo segreto passkey parola parolam parolası секрет",
    "token": "token jeton jetons_d'accès токен токена 令牌 密钥 密鑰 トークン 토큰",
    "key": "key schlüssel schluessel sleutel",
    "clé": "clé clef clave chiave chave",
    "authorization": "authorization",
    "bearer": "bearer",
    "cookie": "cookie",
    "signature": "signature sig",
}
"""What each kind of secret is called. `key` needs one of `KEY_HEADS` before it, `clé` one of `KEY_TAILS` behind it."""

SHORT_NOUNS = "pass pword pswd psw pwd pw pin sig mdp psk token key senha heslo parola"
"""Nouns that count only where a word of a name begins, or behind one of `GLUED_HEADS`."""

GLUED_HEADS = (
    "db my sql mysql pg pgsql ldap smtp imap ftp ssh mail email user usr root admin bind auth api access refresh id "
    "client store key trust app web wifi wlan wpa ps vnc rdp redis mongo rabbit kafka site login master default http "
    "https proxy sudo bot svc service session secret private encryption signing bearer account sharedaccess shared "
    "accountsharedaccess accesskey secretaccess cluster unseal license security csrf jwt x server host guest ansible "
    "vault keystore truststore cert gpg pgp zip enc old new repeat current temp tmp system"
)

KEY_HEADS = (
    "api access secret private encryption encrypt decryption cipher signing sign auth authentication authorization "
    "master account shared app storage session hmac jwt aes deploy unseal webhook admin root ssh gpg pgp subscription "
    "function license activation security write ingest zugangs geheim geheimer recovery wifi wpa network psk service "
    "client bot sharedaccess secretaccess accesskey"
)
PROBED_HEADS = "api access secret private encryption signing auth master account license"
"""Those before which `key` counts in prose and with a space; before the others it must be assigned."""

KEY_TAILS = (
    "api secrète secreta segreta d'accès d'api de_acceso de_acesso di_accesso privée privada privata secret de_api"
)

NOT_HEADS = (
    "forgot forget forgotten reset confirm? has have is no not non show hide toggle require requires required without "
    "check validate validating verify verified hash hashed invalid wrong bad missing min max minimum maximum "
    "generate generated random ask asks prompt next page continuation sync cancel cancellation csrf xsrf eos bos pad "
    "unk sep mask cls special stop num number total input output completion cached per first last prev previous peek "
    "end start design color colour parse parser lexer syntax operator keyword reserved expired empty public pub "
    "primary foreign cache sort partition hash row group idempotency natural unique index composite lookup dedupe "
    "bucket get fetch find load read is use uses by for count each current_token antiforgery verification expand "
    "tool translation message locale i18n label error test_id testid hover press on handle render html css tag word "
    "sub begin left right lookahead enable disable allow strong weak"
)
"""Words of a name before its noun with which it means no secret: `forgot_password`, `next_token`, `public_key`."""

TAILS = (
    "old new prod production dev development test testing staging stage live local default main value val text plain "
    "plaintext string str base64 b64 hex raw current temp tmp db one two a b primary secondary confirm "
    "confirmation repeat again clear data"
)
"""Words that may follow the noun in a name: `password_prod`, `secret.value`."""

SERVICES = (
    "mysql pg pgsql ldap smtp imap ftp sftp ssh mail email root admin mongo redis rabbit kafka wifi wlan vpn vnc rdp "
    "jwt bind es sudo bot ansible vault k8s cluster ci web app api gpg postgres postgresql mariadb sqlite oracle mssql "
    "mongodb cassandra neo4j influx influxdb elastic elasticsearch "
    "opensearch kibana grafana prometheus memcached rabbitmq nats mqtt zookeeper consul nomad github gitlab gitea "
    "bitbucket jira confluence jenkins circleci travis drone sonar sonarqube nexus artifactory harbor docker dockerhub "
    "registry ghcr quay npm pypi cargo maven aws azure gcp google s3 minio cloudflare heroku vercel netlify fly render "
    "digitalocean hetzner linode stripe paypal twilio sendgrid mailgun slack discord telegram sentry datadog newrelic "
    "pagerduty openai anthropic mistral huggingface wandb supabase firebase algolia shopify notion figma spotify "
    "twitter facebook linkedin nas router laptop desktop backup cron worker frontend backend webapp intranet"
)
"""Words that may follow the noun in a name where a word begins: `PASSWORD_MYSQL`."""

FOR = "for of on für de du per para pour"
"""Words behind which any word may follow the noun. With all others, a name means no secret."""

TYPES = (
    "str string text varchar char bytes byte any object number int integer bool boolean buffer uuid secretstr "
    "undefined unknown void null none nil never optional nullable required secret securestring"
)

LISTED = (
    f"{TYPES} "
    "true false yes no on off auto default empty blank missing unset disabled enabled hidden masked redacted omitted "
    "removed placeholder example examples sample dummy fake changeme changethis change replace replaceme insert enter "
    "input output type provide put paste fill todo fixme tbd foo bar baz qux email mail phone address city country "
    "foobar foobaz lorem ipsum here there your yours my mine our the this that an me it its of to for from in at by "
    "with and or not is are was be as if then password passwd passphrase passcode pass pwd pw passwort kennwort "
    "wachtwoord contraseña contrasena senha mot de secret secrets token tokens key keys apikey api access refresh "
    "auth oauth oauth2 bearer basic digest jwt credential credentials creds login logout user username users name "
    "names admin administrator root guest test tests testing postgres postgresql mysql mariadb mongo mongodb redis "
    "rabbitmq value values string text field param params variable variables var env environment config configuration "
    "settings setting options option args arg kwargs self cls ctx context data payload body request response req res "
    "row item items obj result results state props event target form model entity session client server service "
    "provider account project app application database db host port url uri path file files id ids uuid hash hashed "
    "encrypted plain plaintext raw base64 hex generated random new old current next previous first last temp tmp "
    "short long strong weak valid invalid wrong correct incorrect expired required optional description title label "
    "hint header headers cookie cookies query method types kind list array map set get post delete update create "
    "remove add read write check validate verify match parse load save store fetch find show hide reset confirm "
    "forgot forgotten ok okay error errors fail failed failure success succeeded passed skipped warning info debug "
    "unknown other anonymous public private internal external global local dev development staging prod production "
    "stage demo live sandbox mock stub fixture super supersecret topsecret verysecret notasecret deploy deployment "
    "build ci cd github gitlab docker npm pypi aws azure gcp google vault kubernetes k8s helm prompt ask asked see "
    "above below docs documentation manager management policy length count size number index limit ttl expires expiry "
    "refreshed rotated rotate one two three four per each all some any only same it's also now again still just when "
    "where which who what how why into onto about than so but because while until after before during stored sent "
    "given used known shared changed asterisks stars dots bullet xml json yaml toml ini csv html const let await "
    "async return function def class import export static final interface extends abstract struct enum eof ident "
    "identifier literal keyword operator comment whitespace newline bracket brace paren comma colon semicolon tls ssl "
    "cert certificate crt ca pem keystore truststore aws4 sha md5 salt nonce iv hmac rsa ecdsa ed25519 gpg min max "
    "upper lower digits digit letters letter symbols symbol characters character chars char bits bit minutes hours "
    "days seconds obligatoire obligatoria obrigatória requerida falsch richtig abgelaufen vergessen geändert "
    "incorrecta scaduta verlopen trop muy molto muito"
)
"""Plain words that are never a secret, alone or joined: placeholders, types, words of documentation and of code."""

TECHNICAL = (
    "sha1 sha2 sha3 sha256 sha384 sha512 md5 base16 base32 base36 base58 base62 base64 base64url base85 utf8 utf16 "
    "utf-8 utf-16 latin1 ascii7 aes128 aes192 aes256 rsa2048 rsa4096 ed25519 x25519 curve25519 p256 p384 secp256k1 "
    "hs256 hs384 hs512 rs256 rs384 rs512 es256 es384 es512 ps256 argon2 argon2id argon2i bcrypt2 pbkdf2 scrypt1 "
    "oauth1 oauth2 saml2 openid1 2fa mfa2 u2f fido2 k8s i18n l10n a11y s3 ec2 x509 x86 x64 arm64 amd64 http1 http2 "
    "http3 tls1 ipv4 ipv6 p12 pkcs1 pkcs5 pkcs7 pkcs8 pkcs11 pkcs12 rfc2617 rfc6750 python2 python3 py3 es6 es2015 "
    "vue3 web3 log4j neo4j h264 mp3 mp4 1password gpt4 gpt-4 llama2 llama3 c++ cpp17 c++17 c++20 d3 b2 n8n node18 "
    "node20 node22 v8 utf8mb4 bm25 win32 posix1"
)
"""Words with digits that are no secret in prose."""

FILE_ENDINGS = (
    "txt md rst json jsonl yaml yml toml ini cfg conf env xml html css py js mjs cjs ts tsx jsx java kt go rs rb php "
    "cs cpp hpp sh bash zsh ps1 sql log lock pem key crt cer p12 pfx asc gpg csv pdf png jpg svg gz zip tar swift "
    "vue svelte db exs ex sqlite local example sample dev com org net io"
)

PLACEHOLDERS = (
    r"[\W_xX0]*",
    r"<.*>?",
    r"\[.*\]?",
    r"\{.*",
    r"%[\w.]+%",
    r"%s",
    r"#\{.*",
    r"@[\w.]+@",
    r"__\w+__",
    r"\$[A-Za-z_({\[].*",
    r"\$\d?",
    r"[!&*][A-Za-z].*",
    r".*(?:\$\{|\{\{|\$\(|<%|\.\.\.|…|#{4}|x{4}|\*{3}|••).*",
    r".*(?:1234567890|0123456789|abcdefg|a1b2c3).*",
    r"12345678\d?",
    r"\[?redacted.*",
    r"(?:your|my|some|insert|enter|replace|change|put|add|the|example|sample|dummy|fake|placeholder)[-_ ]\D*",
    r"(.)\1*",
    r".*_here",
    r".*EXAMPLE(?:KEY)?",
    r"u?int\d+\w*",
    r"float\d+\w*",
)
"""Expressions of whole values, in any case, that are no secret."""

CODE = (
    r"[A-Za-z_$@][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$]\w*)*!?[(\[].*",
    r"[A-Za-z_]\w*(?:(?:->|::|\?\.)[A-Za-z_]\w*)+",
    r"(?:new|await|typeof|lambda|function)\b.*",
    r"\(.*",
    r"\w+=>.*",
    r"@\w+",
)
"""Expressions of whole values without quotes that compute something: calls, members."""

PATHS = (r"(?:~|\.{1,2}|[A-Z]:)?[\\/][\w.@\\/-]+", r"[a-z][a-z0-9+.-]*://.*")

NO_SECRETS_IN_PROSE = (
    r"[\W\d_]+(?:[a-z]{1,2}|[A-Z]|[KMGT]B)?",
    r"v?\d+(?:\.\w+)+",
    r"\d+-?(?:st|nd|rd|th|bits?|bytes?|days?|hours?|mins?|minutes?|secs?|seconds?|weeks?|years?)",
    r"\d+-?(?:characters?|chars?|digits?|fold|factor|way|[KMGT]i?B|[kmg]bps|rpm|fps|dpi)",
    r"\d+-[a-z]+",
    r"\d{4}-\d\d-\d\dT?.*",
    r"0x[0-9a-fA-F]+",
    r"(?:\d+[hms]){1,3}",
    r"[A-Z]{2,5}",
    r"[^\W\d_]+['’][^\W\d_]{1,3}",
    r"[\w.+-]+@[\w-]+(?:\.\w+)+",
    r"[A-Z]{1,3}&[A-Z]{1,3}",
    r"#\d+",
    r"[A-Z]+-\d+",
    r"[A-Za-z]{1,3}-?\d{1,3}",
    r"[\w-]+\(\w*\)",
    r".*[(\[{=].*",
    r"[A-Za-z*./-]+\.[a-z]{1,5}",
)
"""Expressions of whole words with digits or signs that are no secret in prose: measures, dates, versions, keys of
issues, contractions, addresses."""

LINKS = (
    "is was are were be being becomes equals to as = : := -> => → — – ist war lautet wäre auf est était es era è é "
    "foi sono são c'est werd wird sera será sarà naar enter gib entrez introduce digita typ "
    "it's 's ’s been jest brzmi było je bylo är er это был является là adalah"
)
ADVERBS = (
    "now currently still just set changed reset jetzt nun désormais ahora ora agora nu also temporarily : « “ „ \" ' `"
)
"""Words between a noun and its value in prose."""

VALUE_FIRST = (
    "is was should_be would_be must_be might_be could_be will_be used_to_be has_been ist war est es è é foi as als "
    "comme como come to jest je är er это là"
)
ADVERBS_FIRST = "still now also probably always again what_i_use_as what_we_use_as what_they_use_as"
USES = (
    "use using used try enter type set put gave_me gave_us gave_you gave_him gave_her gave_them give_me got send "
    "choose chose picked nimm utilise usa gebruik"
)
"""Words before a value that a name explains behind it: "use hunter2 as the password"."""
PURPOSES = "as for at when if where als für comme pour como para come per voor jako som как"
APPOSED = (
    "it's it_is it_was that's that_is one_is c'est es_ist das_ist è es é het_is to to_jest je_to det_är det_er это"
)
THAT_IS = "that's that_is that_was it's it_is this_is c'est das_ist eso_es questa_è dat_is"
"""Words before a value, and behind it, that a name explains behind a comma: "it's hunter2, the password"."""
WRAPPERS = (
    "String::from SecretStr SecretString::from SecretString::new Secret::new Secret Buffer.from bytes str b64decode"
)
"""Calls whose first argument is the value itself."""
OWNERS = (
    "my the our your his her their a das mein meine dein unser der die le la mon ma notre votre mi el nuestra su mia "
    "il nostra tua a minha nossa o mijn het ons de onze moje nasze twoje moje naše tvoje mitt vårt ditt mit vores "
    "мой наш твой benim bizim của"
)

SESSION_COOKIES = "sess sid auth token jwt login remember ticket csrf xsrf identity secret key user id"
COOKIE_ATTRIBUTES = (
    "path domain expires max-age samesite secure httponly priority partitioned lang locale theme consent"
)
