package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The tests of faults, in the files faults_*_test.go, each show a kind of
// fault that users of other implementations met, over all its siblings. What
// they have in common is here: what no frame of ours may be.

// checkFrame checks a frame that was written by our side: one line of JSON,
// one of the envelopes of JSON-RPC with exactly its members, a defined error
// code, and nothing null that must be an array.
func checkFrame(t testing.TB, frame string) {
	t.Helper()
	if fault := frameFault(frame); fault != "" {
		t.Errorf("%s: %.2000s", fault, frame)
	}
}

func frameFault(frame string) string {
	if strings.ContainsAny(frame, "\r\n") {
		return "more than one line"
	}
	if err := validJSON([]byte(frame)); err != nil {
		return err.Error()
	}
	if batch, ok := splitBatch([]byte(frame)); ok {
		for m := range batch {
			if fault := frameFault(string(m)); fault != "" {
				return "in a batch: " + fault
			}
		}
		return ""
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(frame), &members); err != nil {
		return err.Error()
	}
	if name := repeatedMember([]byte(frame)); name != nil {
		return string(name) + " is there twice"
	}
	var names []string
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	switch strings.Join(names, " ") {
	case "id jsonrpc method", "id jsonrpc method params", "jsonrpc method", "jsonrpc method params", "id jsonrpc result", "error id jsonrpc", "error jsonrpc":
	default:
		return fmt.Sprintf("the members are %q", names)
	}
	id := string(members["id"])
	if _, err := parseID([]byte(id)); id != "" && err != nil && !(id == "null" && members["error"] != nil) {
		return "the id is " + id
	}
	if string(members["jsonrpc"]) != `"2.0"` {
		return "the version of JSON-RPC is not 2.0"
	}
	for _, name := range []string{"params", "result"} {
		if raw := members[name]; raw != nil && (raw[0] != '{' || nullArray(raw) != "") {
			return name + " is not an object, or has a null " + nullArray(raw)
		}
	}
	return errorFault(members["error"])
}

// errorFault says what is wrong with an error object: its members, or a code
// that the specification reserves and does not define.
func errorFault(raw json.RawMessage) string {
	if raw == nil {
		return ""
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return err.Error()
	}
	for name := range members {
		if name != "code" && name != "message" && name != "data" {
			return "an error with " + name
		}
	}
	if text, ok := stringValue(members["message"]); !ok || text == "" {
		return "an error without a message"
	}
	code, err := strconv.Atoi(string(members["code"]))
	if err != nil || code == 0 || -32768 <= code && code <= -32000 && !slices.Contains([]int{
		CodeParseError, CodeInvalidRequest, CodeMethodNotFound, CodeInvalidParams, CodeInternalError, CodeHeaderMismatch,
		CodeMissingClientCapability, CodeUnsupportedProtocolVersion, CodeURLElicitationRequired}, code) {
		return "an undefined code"
	}
	return ""
}

// nullArray returns the name of a member that the protocol defines as an
// array, or as an object, and that is null; "" if there is none. What users supply
// may hold anything.
func nullArray(raw json.RawMessage) string {
	var elements []json.RawMessage
	json.Unmarshal(raw, &elements)
	for _, element := range elements {
		if name := nullArray(element); name != "" {
			return name
		}
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return ""
	}
	for name, value := range object {
		switch name {
		case "_meta", "arguments", "structuredContent", "inputSchema", "outputSchema", "requestedSchema", "data", "input", "metadata", "params", "inputResponses":
			continue
		}
		if string(value) == "null" && name != "ttl" { // of a task: without end
			return name
		}
		if name := nullArray(value); name != "" && object["action"] == nil { // the content of a form is the user's
			return name
		}
	}
	return ""
}

// A tap is a transport that checks what its side writes and passes it on
// untouched.
type framesTap struct {
	Transport
	t testing.TB
}

type framesTapConn struct {
	Conn
	t testing.TB
}

func (tap framesTap) Connect(ctx context.Context) (Conn, error) {
	conn, err := tap.Transport.Connect(ctx)
	return framesTapConn{conn, tap.t}, err
}

func (c framesTapConn) Write(ctx context.Context, frame []byte) error {
	checkFrame(c.t, string(frame))
	return c.Conn.Write(ctx, frame)
}

func TestFrameFaultsAreFound(t *testing.T) {
	for _, frame := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{}`, "{\"jsonrpc\":\"2.0\",\n\"id\":1,\"result\":{}}", `{"jsonrpc":"2.0","id":null,"result":{}}`, `{"jsonrpc":"2.0","id":1.5,"result":{}}`,
		`{"id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"result":[]}`, `{"jsonrpc":"2.0","id":1,"result":null}`, `{"jsonrpc":"2.0","id":1,"result":{},"error":null}`,
		`{"jsonrpc":"2.0","id":1,"id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"result":{"tools":null}}`, `{"jsonrpc":"2.0","id":1,"result":{"a":[{"b":null}]}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":0,"message":"m"}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"m"}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"m"}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"m"}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m","stack":""}}`,
		`{"jsonrpc":"2.0","id":1,"method":"m","params":[]}`, `{"jsonrpc":"2.0","id":1,"method":"m","extra":1}`, `[{"jsonrpc":"2.0","id":1,"result":[]}]`, `7`,
	} {
		if frameFault(frame) == "" {
			t.Errorf("nothing is wrong with %s", frame)
		}
	}
	for _, frame := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"_meta":{"a":null},"structuredContent":null}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m","data":null}}`,
		`{"jsonrpc":"2.0","error":{"code":7,"message":"m"}}`, `{"jsonrpc":"2.0","id":"","method":"m"}`, `[{"jsonrpc":"2.0","id":1,"result":{}}]`,
	} {
		if fault := frameFault(frame); fault != "" {
			t.Errorf("%s: %s", frame, fault)
		}
	}
}
