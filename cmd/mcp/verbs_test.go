package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"mcpkit/mcp"
)

// onDemo runs a verb against the demo server; the words of args are split at
// spaces, but for what stands between single quotes.
func onDemo(t *testing.T, args string) (code int, stdout, stderr string) {
	t.Helper()
	var words []string
	for i, part := range strings.Split(args, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	// A server with the race detector would take a second to end.
	return runs(t, "", append(words, "--env", "GORACE=atexit_sleep_ms=0", "--", os.Args[0], "demo")...)
}

// Each verb, in both eras where they differ for the user, and what it prints:
// all of it, or a beginning and "…".
func TestVerbs(t *testing.T) {
	for _, c := range []struct {
		args, stdout, stderr string
		code                 int
	}{
		{args: "tools", stdout: "echo\n    Says the text again\n    - text (string, required): what to say\nadd\n…"},
		{args: "resources", stdout: "demo://readme\n    readme, text/markdown\n    What this server shows\ndemo://logo\n    logo, image/png, 119 bytes\n    A small picture\ndemo://clock\n    clock, text/plain\n    The time of day, by the second\n"},
		{args: "templates", stdout: "demo://users/{id}/profile\n    profile, text/plain\n    A user\nfile:///demo/{+path}\n    files\n    The demo's files: hello.txt, logo.png\n"},
		{args: "prompts", stdout: "greet\n    A greeting\n    - name (required): who is greeted\n    - style: formal, friendly, funny\ntranslate\n    The greeting in another language\n    - language (required)\n    - dialect\nreview\n    A review of the readme\n"},
		{args: "ping", stdout: "demo answered after …"},
		{args: "ping --version 2025-11-25", stdout: "demo answered after …"},
		{args: "discover", stdout: "demo 0.1.0 (Demo)\n    protocol: 2026-07-28\n    capabilities: completions, logging, prompts, resources, tools\n    Shows what the protocol can do\n    A server to try things with.…"},
		{args: "discover --version 2025-06-18", stdout: "demo 0.1.0 (Demo)\n    protocol: 2025-06-18\n…"},

		{args: "call echo text=hello", stdout: "hello\n"},
		{args: "call echo text=42", stdout: "42\n"}, // the tool wants a string
		{args: `call echo '{"text":"a b"}'`, stdout: "a b\n"},
		{args: "call echo 'text=a=b c'", stdout: "a=b c\n"},
		{args: "call add a=2 --version 2024-11-05 b=40", stdout: "{\"sum\":42}\n"},
		{args: "call countdown from=2", stdout: "lift-off\n", stderr: "progress: 1/2 1 to go\nprogress: 2/2 0 to go\n"},
		{args: "call primes below=10", stdout: "[2,3,5,7]\n"},
		{args: "call content", stdout: "A text for everyone\n[image: image/png, 119 bytes]\n[audio: audio/wav, 1044 bytes]\n[link: demo://logo, logo]\n[resource: demo://readme, text/markdown]\n" + readme},
		{args: "call content --version 2024-11-05", stdout: "A text for everyone\n[image: image/png, 119 bytes]\n…"},
		{args: "call pay", stdout: "nothing was paid: decline\n", stderr: "The server asks: Please pay 5 coins\nIt wants you to open a page of pay.example:\n  https://pay.example/order?coins=5\nDeclined: standard input is not a terminal.\n"},
		{args: "call pay amount=7 --version 2025-11-25", stdout: "nothing was paid: decline\n", stderr: "The server asks: Please pay 7 coins\nIt wants you to open a page of pay.example:\n  https://pay.example/order?coins=7\nDeclined: standard input is not a terminal.\n"},
		{args: "call book", stdout: "seat 1 was given back\n", stderr: "The server asks: Which day?\nDeclined: standard input is not a terminal.\n"},
		{args: "call ask question=Who?", stdout: "decline\n", stderr: "The server asks: Who?\nDeclined: standard input is not a terminal.\n"},
		{args: "call ask --version 2025-11-25", stdout: "decline\n", stderr: "The server asks: Who are you?\nDeclined: standard input is not a terminal.\n"},
		{args: "call log level=info message=hello", stdout: "logged at info\n", stderr: "log: info: {\"msg\":\"hello\"}\n"},
		{args: "call log level=error message=hello --version 2025-11-25", stdout: "logged at error\n", stderr: "log: error: {\"msg\":\"hello\"}\n"},
		{args: "read demo://readme", stdout: readme},
		{args: "read demo://logo", stdout: string(demoLogo())},
		{args: "read demo://users/7/profile", stdout: "The profile of user 7"},
		{args: "read file:///demo/hello.txt", stdout: "Hello from a file.\n"},
		{args: "read file:///demo/logo.png --version 2024-11-05", stdout: string(demoLogo())},
		{args: "read file:///demo/..%2fhello.txt", code: 1, stderr: "mcp: resource not found: file:///demo/..%2fhello.txt…"},
		{args: "call lifespan", stdout: "{\"up\":\"…"},
		{args: "call login", code: 1, stderr: "The server asks: Please log in\nIt wants you to open a page of login.example:\n  https://login.example/\nDeclined: standard input is not a terminal.\nmcp: nobody logged in: decline\n"},
		{args: "call login --version 2025-11-25", code: 1, stderr: "The server asks: Please log in\n…"},
		{args: "get greet name=Ada style=funny", stdout: "user: Greet Ada in a funny way.\n"},
		{args: "get review", stdout: "user: Review this text:\nuser: [resource: demo://readme, text/markdown]\n" + readme},

		{args: "complete greet style=f", stdout: "formal\nfriendly\nfunny\n"},
		{args: "complete greet style=fr name=Ada --version 2025-11-25", stdout: "friendly\n"},
		{args: "complete demo://users/{id}/profile id= --version 2025-03-26", stdout: "1\n2\n3\n…", stderr: "These are 100 of 250.\n"},
		{args: "complete translate dialect=S language=German", stdout: "Swiss\n"},
		{args: "complete greet style=x", stderr: "The server proposes nothing.\n"},
		{args: "complete nothing a=", code: 1, stderr: "mcp: unknown prompt: nothing (code -32602)\n"},
		{args: "complete none://{x} a=", code: 1, stderr: "mcp: unknown resource template: none://{x} (code -32602)\n"},
		{args: "complete greet", code: 2, stderr: "mcp: complete needs PROMPT or TEMPLATE, and ARGUMENT=START\n…"},
		{args: "complete greet style", code: 2, stderr: "mcp: complete: \"style\" is not KEY=VALUE\n…"},

		{args: "listen demo://readme --call touch -n 1", stdout: "demo://readme has changed\n"},
		{args: "listen demo://readme --call touch -n 1 --version 2024-11-05", stdout: "demo://readme has changed\n"},
		{args: "listen demo://readme tools --call touch -n 2 --for 100ms --version 2025-11-25", code: 1, stdout: "demo://readme has changed\n", stderr: "mcp: listen: 1 of 2 changes\n"},
		{args: "listen tools prompts --call bonus -n 2 --version 2025-03-26", stdout: "tools have changed\nprompts have changed\n"},
		{args: "listen demo://clock -n 1", stdout: "demo://clock has changed\n"},
		{args: "listen resources --call bonus -n 1", stdout: "resources have changed\n"},
		{args: "listen --for 10ms"},
		{args: "listen --call fail", code: 1, stderr: "mcp: this tool always fails\n"},
		{args: "listen lists", code: 2, stderr: "mcp: listen: \"lists\" is not tools, prompts, resources, or a URI\n…"},
		{args: "listen -n 0", code: 2, stderr: "mcp: listen: -n must be more than 0\n…"},
		{args: "listen --for -1s", code: 2, stderr: "mcp: listen: -for must be more than 0\n…"},
		{args: "tools -n 1", code: 2, stderr: "mcp: tools: flag provided but not defined: -n\n…"},

		{args: "log warning log level=error message=hello", stdout: "error: {\"msg\":\"hello\"}\n"},
		{args: "log warning log level=error message=hello --version 2025-06-18", stdout: "error: {\"msg\":\"hello\"}\n"},
		{args: "log warning log level=info message=hello"},
		{args: "log warning log level=info message=hello -n 1 --for 10ms", code: 1, stderr: "mcp: log: 0 of 1 messages\n"},
		{args: "log info --for 10ms --version 2025-11-25"},
		{args: "log info --for 10ms", code: 1, stderr: "mcp: log: at 2026-07-28 messages belong to a call: name a tool, or an older --version\n"},
		{args: "log info fail", code: 1, stderr: "mcp: this tool always fails\n"},
		{args: "log loud", code: 2, stderr: "mcp: log: the level \"loud\" is not one of debug, info…"},
		{args: "log", code: 2, stderr: "mcp: log needs LEVEL…"},
		{args: "log info --call log", code: 2, stderr: "mcp: log: flag provided but not defined: -call\n…"},

		{args: "call fail", code: 1, stderr: "mcp: this tool always fails\n"},
		{args: "call panic", code: 1, stderr: "mcp: internal error (code -32603)\n"},
		{args: "call pay --version 2025-06-18", code: 1, stderr: "mcp: unknown tool: pay (code -32602)\n"}, // no pages there
		{args: "call die", code: 1, stderr: "mcp: tools/call: session closed…"},
		{args: "listen demo://none", code: 1, stderr: "The server does not tell of changes of demo://none.\nmcp: listen: there is nothing to listen to\n"},
		{args: "listen demo://none --version 2025-06-18", code: 1, stderr: "mcp: resource not found: demo://none…"},
		{args: "call nothing", code: 1, stderr: "mcp: unknown tool: nothing (code -32602)…"},
		{args: "call add a=1 b=two", code: 1, stderr: "mcp: invalid arguments: /b: must be a number, got a string\n"},
		{args: "call wait --timeout 200ms", code: 1, stderr: "mcp: tools/call: no answer within 200ms…"},
		{args: "call sample prompt=x", code: 1, stderr: "mcp: missing required client capability (code -32021): {\"requiredCapabilities\":{\"sampling\":{}}}\n"},
		{args: "read demo://nothing", code: 1, stderr: "mcp: resource not found: demo://nothing (code -32602)…"},
		{args: "get greet", code: 1, stderr: "mcp: prompt greet needs the argument name (code -32602)…"},

		{args: "call echo hello", code: 2, stderr: "mcp: call: \"hello\" is not KEY=VALUE\n…"},
		{args: "call echo a=1 a=2", code: 2, stderr: "mcp: call: a is given twice\n…"},
		{args: "call echo '{\"text\":'", code: 2, stderr: "mcp: call: the arguments are not JSON…"},
		{args: "call", code: 2, stderr: "mcp: call needs NAME…"},
		{args: "read a b", code: 2, stderr: "mcp: read: what is \"b\"?\n…"},
		{args: "tools --version 2026", code: 2, stderr: "mcp: tools: invalid value \"2026\" for flag -version: not one of 2024-11-05, …"},
		{args: "tools --env FOO", code: 2, stderr: "mcp: tools: invalid value \"FOO\" for flag -env: not KEY=VALUE\n…"},
		{args: "tools --timeout 0s", code: 2, stderr: "mcp: tools: the timeout must be more than 0\n…"},
		{args: "tools --loud", code: 2, stderr: "mcp: tools: flag provided but not defined: -loud\n…"},
	} {
		code, stdout, stderr := onDemo(t, c.args)
		if code != c.code || !fits(stdout, c.stdout) || !fits(stderr, c.stderr) {
			t.Errorf("mcp %s: exit code %d\nstdout: %s\nstderr: %s", c.args, code, stdout, stderr)
		}
	}
	if left := children(); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

func fits(got, want string) bool {
	begin, open := strings.CutSuffix(want, "…")
	return got == want || open && strings.HasPrefix(got, begin)
}

// With --json the result is what the server sent: at 2026-07-28 with its
// envelope, before without.
func TestVerbsJSON(t *testing.T) {
	for _, c := range []struct {
		args, member, legacy string // a member of the result, and all of it at 2025-11-25 if that is short
		code                 int
		plain                bool // no result, and so without an envelope
	}{
		{args: "tools", member: "tools"},
		{args: "resources", member: "resources"},
		{args: "templates", member: "resourceTemplates"},
		{args: "prompts", member: "prompts"},
		{args: "discover", member: "capabilities"},
		{args: "ping", member: "protocolVersion", plain: true},
		{args: "call add a=2 b=40", member: "structuredContent", legacy: `{"content":[{"type":"text","text":"{\"sum\":42}"}],"structuredContent":{"sum":42}}`},
		{args: "call echo text=<&>", member: "content", legacy: `{"content":[{"type":"text","text":"<&>"}]}`},
		{args: "call fail", member: "isError", legacy: `{"content":[{"type":"text","text":"this tool always fails"}],"isError":true}`, code: 1},
		{args: "read demo://users/7/profile", member: "contents", legacy: `{"contents":[{"uri":"demo://users/7/profile","mimeType":"text/plain","text":"The profile of user 7"}]}`},
		{args: "get greet name=Ada", member: "messages"},
		{args: "complete greet style=fr", member: "completion", legacy: `{"completion":{"values":["friendly"]}}`},
		{args: "listen demo://readme --call touch -n 1", member: "method", plain: true, legacy: `{"method":"notifications/resources/updated","uri":"demo://readme"}`},
		{args: "log info log level=info message=x", member: "data", plain: true, legacy: `{"level":"info","data":{"msg":"x"}}`},
	} {
		for _, version := range []string{mcp.Version20260728, mcp.Version20251125} {
			code, stdout, stderr := onDemo(t, c.args+" --json --version "+version)
			var result map[string]json.RawMessage
			err := json.Unmarshal([]byte(stdout), &result)
			if code != c.code || err != nil || result[c.member] == nil || strings.Count(stdout, "\n") != 1 {
				t.Errorf("mcp %s at %s: exit code %d, %v\n%s%s", c.args, version, code, err, stdout, stderr)
			}
			modern := version == mcp.Version20260728 && !c.plain
			if (result["resultType"] != nil) != modern || !modern && c.legacy != "" && stdout != c.legacy+"\n" {
				t.Errorf("mcp %s at %s: %s", c.args, version, stdout)
			}
		}
	}
}

// Servers that are not there, do not speak, or die; and what they write to
// standard error.
func TestVerbsServer(t *testing.T) {
	for _, c := range []struct {
		args        string
		code        int
		stderr, not string
	}{
		{"tools", 2, "mcp: tools: no server: its URL comes last, or its command after --", ""},
		{"tools --", 2, "mcp: tools: no server: its URL comes last, or its command after --", ""},
		{"tools -- /no/such/program", 1, "mcp: start the server: ", ""},
		{"tools --timeout 200ms -- " + os.Args[0] + " deaf", 1, "no answer within 200ms", ""},
		{"tools -- " + os.Args[0] + " dance", 1, `there is no command "dance"`, ""},
		{"call panic -- " + os.Args[0] + " demo", 1, "mcp: internal error", "level=ERROR"},
		{"call panic --stderr -- " + os.Args[0] + " demo", 1, "level=ERROR", ""},
	} {
		code, stdout, stderr := runs(t, "", strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(stderr, c.stderr) || stdout != "" || c.not != "" && strings.Contains(stderr, c.not) {
			t.Errorf("mcp %s: exit code %d\n%s%s", c.args, code, stdout, stderr)
		}
	}
}

// Servers that end while they are listened to: in order, or not.
func TestVerbsServerEnds(t *testing.T) {
	for _, c := range []struct {
		args, stderr string
		code         int
	}{
		{"listen --version 2025-11-25", "The server has ended the connection.\n", 0},
		{"log info --version 2025-11-25", "The server has ended the connection.\n", 0},
		{"listen -n 1 --version 2025-11-25", "The server has ended the connection.\nmcp: listen: 0 of 1 changes\n", 1},
		{"log info wait", "The server has ended the connection.\n", 0},
		{"listen --call die --version 2024-11-05", "mcp: tools/call: session closed…", 1},
	} {
		args := append(strings.Fields(c.args), "--env", "GORACE=atexit_sleep_ms=0", "--", os.Args[0], "brief")
		code, stdout, stderr := runs(t, "", args...)
		if code != c.code || stdout != "" || !fits(stderr, c.stderr) {
			t.Errorf("mcp %s: exit code %d\n%s%s", c.args, code, stdout, stderr)
		}
	}
	if left := children(); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// A server gets the variables that --env gives it.
func TestVerbsEnv(t *testing.T) {
	code, stdout, stderr := runs(t, "", "discover", "--env", "TEST_GREETING=a=b", "--env", "TEST_OTHER=", "--", os.Args[0], "environment")
	if code != 1 || stdout != "" || !strings.Contains(stderr, `greeting "a=b" other "" true`) {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

// When the program is told to stop it gives up the call and ends the server;
// that is how listen and log are meant to end.
func TestVerbsInterrupted(t *testing.T) {
	for _, c := range []struct {
		args, stderr string
		code         int
	}{
		{"call wait", "mcp: interrupted\n", 1},
		{"listen", "", 0},
		{"listen -n 1 --version 2025-11-25", "mcp: interrupted\n", 1},
		{"log info wait", "", 0},
		{"log info --version 2025-11-25", "", 0},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(300*time.Millisecond, cancel)
		var stdout, stderr bytes.Buffer
		args := append(strings.Fields(c.args), "--env", "GORACE=atexit_sleep_ms=0", "--", os.Args[0], "demo")
		code := run(ctx, args, strings.NewReader(""), &stdout, &stderr)
		if code != c.code || stdout.Len() > 0 || stderr.String() != c.stderr {
			t.Errorf("mcp %s: exit code %d\n%s%s", c.args, code, &stdout, &stderr)
		}
	}
	if left := children(); left != nil {
		t.Errorf("left behind: %q", left)
	}
}
