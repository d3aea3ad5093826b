package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/big"
	"net/netip"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"golang.org/x/tools/txtar"
)

// publishedSpec is where the published schemas and examples lie on machines
// that have them; the tests that need them say so.
const publishedSpec = "../shared/spec"

// jsonEqual reports whether two documents have the same value, digit by digit
// in numbers.
func jsonEqual(t *testing.T, a, b []byte) bool {
	t.Helper()
	values := [2]any{}
	for i, data := range [][]byte{a, b} {
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		if err := dec.Decode(&values[i]); err != nil {
			t.Fatalf("%v in %s", err, data)
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

// exampleTypes are the Go types of the examples that are neither envelopes nor
// parts of a form's schema.
var exampleTypes = map[string]any{
	"AudioContent": Content{}, "BlobResourceContents": ResourceContents{}, "CallToolRequestParams": CallToolParams{},
	"CallToolResult": CallToolResult{}, "CancelledNotificationParams": CancelledParams{}, "ClientCapabilities": ClientCapabilities{},
	"CompleteRequestParams": CompleteParams{}, "CompleteResult": CompleteResult{}, "CreateMessageRequestParams": CreateMessageParams{},
	"CreateMessageResult": CreateMessageResult{}, "DiscoverResult": DiscoverResult{}, "ElicitRequestFormParams": ElicitParams{},
	"ElicitRequestURLParams": ElicitParams{}, "ElicitResult": ElicitResult{}, "EmbeddedResource": Content{},
	"GetPromptRequestParams": GetPromptParams{}, "GetPromptResult": GetPromptResult{}, "ImageContent": Content{},
	"InputRequests": InputRequests{}, "InputRequiredResult": InputRequiredResult{}, "InputResponses": InputResponses{},
	"ListPromptsResult": ListPromptsResult{}, "ListResourceTemplatesResult": ListResourceTemplatesResult{},
	"ListResourcesResult": ListResourcesResult{}, "ListRootsResult": ListRootsResult{}, "ListToolsResult": ListToolsResult{},
	"LoggingMessageNotificationParams": LogParams{}, "ModelPreferences": ModelPreferences{}, "PaginatedRequestParams": ListParams{},
	"ProgressNotificationParams": ProgressParams{}, "ReadResourceResult": ReadResourceResult{}, "Resource": Resource{},
	"ResourceLink": Content{}, "ResourceUpdatedNotificationParams": ResourceUpdatedParams{}, "Root": Root{},
	"SamplingMessage": SamplingMessage{}, "ServerCapabilities": ServerCapabilities{}, "SubscriptionsListenResult": EmptyResult{},
	"TextContent": Content{}, "TextResourceContents": ResourceContents{}, "Tool": Tool{}, "ToolResultContent": Content{},
	"ToolUseContent":                       Content{},
	"MissingRequiredClientCapabilityError": MissingCapabilityData{}, "UnsupportedProtocolVersionError": UnsupportedVersionData{},
}

// paramsTypes are the Go types of the params of each method.
var paramsTypes = map[string]any{
	methodToolsCall: CallToolParams{}, methodComplete: CompleteParams{}, methodCreateMessage: CreateMessageParams{},
	methodDiscover: EmptyParams{}, methodElicit: ElicitParams{}, methodPromptsGet: GetPromptParams{},
	methodPromptsList: ListParams{}, methodTemplatesList: ListParams{}, methodResourcesList: ListParams{}, methodToolsList: ListParams{},
	methodRootsList: EmptyParams{}, methodResourcesRead: ReadResourceParams{}, methodListen: ListenParams{},
	notifyCancelled: CancelledParams{}, notifyMessage: LogParams{}, notifyProgress: ProgressParams{},
	notifyPromptsChanged: EmptyParams{}, notifyResourcesChanged: EmptyParams{}, notifyToolsChanged: EmptyParams{},
	notifyResourceUpdated: ResourceUpdatedParams{}, notifyAcknowledged: ListenParams{},
}

// recode decodes data as the type of v, in both ways, and encodes it again.
func recode(data []byte, v any) ([]byte, error) {
	var out [2][]byte
	for i, strict := range []bool{true, false} {
		p := reflect.New(reflect.TypeOf(v)).Interface()
		if err := decodeAt(data, p, rev20260728, strict); err != nil {
			return nil, err
		}
		var err error
		if out[i], err = encodeAt(nil, p, rev20260728); err != nil {
			return nil, err
		}
	}
	if !bytes.Equal(out[0], out[1]) {
		return nil, fmt.Errorf("read strictly %s, else %s", out[0], out[1])
	}
	return out[0], nil
}

// recodeParams does the same for the params of a method.
func recodeParams(method string, params []byte) ([]byte, error) {
	v, ok := paramsTypes[method]
	if !ok || params == nil {
		return params, nil
	}
	return recode(params, v)
}

// recodeExample decodes an example by the name of its type and encodes it.
func recodeExample(name string, data []byte) ([]byte, error) {
	isError := strings.HasSuffix(name, "Error")
	switch v, ok := exampleTypes[name]; {
	case ok && !isError:
		return recode(data, v)
	case name == "CreateMessageRequest", name == "ElicitRequest", name == "ListRootsRequest": // not requests at 2026-07-28
		var in InputRequest
		err := decodeAt(data, &in, rev20260728, true)
		if err == nil {
			in.Params, err = recodeParams(in.Method, in.Params)
		}
		if err != nil {
			return nil, err
		}
		return encodeAt(nil, in, rev20260728)
	case strings.HasSuffix(name, "Schema"):
		form := fmt.Appendf(nil, `{"message":"","requestedSchema":{"type":"object","properties":{"x":%s}}}`, bytes.TrimSpace(data))
		out, err := recode(form, ElicitParams{})
		return rawMember(rawMember(rawMember(out, "requestedSchema"), "properties"), "x"), err
	case isError && rawMember(data, "jsonrpc") == nil: // without its envelope
		e, err := decodeError(bytes.TrimSpace(data))
		if err != nil {
			return nil, err
		}
		return rawMember(appendError(nil, ID{}, e), "error"), nil
	}
	m, _, invalid := decodeMessage(data)
	if invalid != nil {
		return nil, invalid
	}
	return recodeMessage(name, m)
}

func recodeMessage(name string, m Message) ([]byte, error) {
	switch {
	case m.Error != nil:
		var err error
		if v, ok := exampleTypes[name]; ok {
			m.Error.Data, err = recode(m.Error.Data, v)
		}
		return appendError(nil, m.ID, m.Error), err
	case m.Result != nil:
		result, err := recode(m.Result, exampleTypes[strings.TrimSuffix(name, "Response")])
		return append(append(appendResultHead(nil, m.ID), result...), '}'), err
	}
	if _, ok := paramsTypes[m.Method]; !ok {
		return nil, errors.New("no type for the params of " + m.Method)
	}
	params, err := recodeParams(m.Method, m.Params)
	if m.IsRequest() {
		return appendRequest(nil, m.ID, m.Method, params), err
	}
	return appendNotification(nil, m.Method, params), err
}

// examples returns our own examples, by "type/name.json".
func examples(t *testing.T) fstest.MapFS {
	archive, err := txtar.ParseFile("testdata/types/examples.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	for _, f := range archive.Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	return files
}

func TestExamplesRoundTrip(t *testing.T) {
	shows(t, "tools.structured.any", "tools.content.audio", "tools.content.embedded", "tools.content.resource-link")
	folders := map[string]fs.FS{"own": examples(t)}
	least := map[string]int{"own": 40}
	if _, err := os.Stat(publishedSpec); err == nil {
		folders["published"], least["published"] = os.DirFS(publishedSpec+"/examples/2026-07-28"), 129
	}
	for name, folder := range folders {
		t.Run(name, func(t *testing.T) {
			files, err := fs.Glob(folder, "*/*.json")
			if err != nil || len(files) < least[name] {
				t.Fatalf("%d examples, %v", len(files), err)
			}
			for _, file := range files {
				data, err := fs.ReadFile(folder, file)
				if err != nil {
					t.Fatal(err)
				}
				if path.Dir(file) == "ListRootsRequest" { // one has an id, which the type does not
					data = bytes.Replace(data, []byte(`"id": "list-roots-example",`), nil, 1)
				}
				out, err := recodeExample(path.Dir(file), data)
				if err != nil {
					t.Errorf("%s: %v", file, err)
				} else if !jsonEqual(t, data, out) {
					t.Errorf("%s:\n%s\nbecame\n%s", file, data, out)
				}
				if bytes.ContainsAny(out, "\n\r") {
					t.Errorf("%s: not on one line: %s", file, out)
				}
			}
		})
	}
}

// A protocolType is a type with what the revisions say of it.
type protocolType struct {
	value any
	kind  string // of a type whose members depend on it
	defs  string // its name in the published schemas; "params of" a request or notification
	// members by revision: those of the first one, then what came "+" and went
	// "-". A revision that is not named is like the one before; the type
	// begins at the first one and ends before one that says "gone".
	members map[*revision]string
}

type since = map[*revision]string

var protocolTypes = []protocolType{
	{Annotations{}, "", "Annotations Annotated/properties/annotations", since{rev20241105: "audience priority", rev20250618: "+lastModified"}},
	{Implementation{}, "", "Implementation", since{rev20241105: "name version", rev20250618: "+title", rev20251125: "+description +icons +websiteUrl"}},
	{Icon{}, "", "Icon", since{rev20251125: "src mimeType sizes theme"}},

	{Content{}, "text", "TextContent", since{rev20241105: "type text annotations", rev20250618: "+_meta"}},
	{Content{}, "image", "ImageContent", since{rev20241105: "type data mimeType annotations", rev20250618: "+_meta"}},
	{Content{}, "audio", "AudioContent", since{rev20250326: "type data mimeType annotations", rev20250618: "+_meta"}},
	{Content{}, "resource", "EmbeddedResource", since{rev20241105: "type resource annotations", rev20250618: "+_meta"}},
	{Content{}, "resource_link", "ResourceLink", since{
		rev20250618: "type uri name title description mimeType size annotations _meta", rev20251125: "+icons"}},
	{Content{}, "tool_use", "ToolUseContent", since{rev20251125: "type id name input _meta"}},
	{Content{}, "tool_result", "ToolResultContent", since{rev20251125: "type toolUseId content structuredContent isError _meta"}},
	{ResourceContents{}, "text", "TextResourceContents", since{rev20241105: "uri mimeType text", rev20250618: "+_meta"}},
	{ResourceContents{}, "blob", "BlobResourceContents", since{rev20241105: "uri mimeType blob", rev20250618: "+_meta"}},

	{ClientCapabilities{}, "", "ClientCapabilities", since{
		rev20241105: "experimental roots sampling", rev20250618: "+elicitation", rev20251125: "+tasks", rev20260728: "-tasks +extensions"}},
	{RootsCapability{}, "", "", since{rev20241105: "listChanged", rev20260728: "-listChanged"}},
	{SamplingCapability{}, "", "", since{rev20241105: "", rev20251125: "+context +tools"}},
	{ElicitationCapability{}, "", "", since{rev20250618: "", rev20251125: "+form +url"}},
	{ServerCapabilities{}, "", "ServerCapabilities", since{
		rev20241105: "experimental logging prompts resources tools", rev20250326: "+completions", rev20251125: "+tasks",
		rev20260728: "-tasks +extensions"}},
	{ListCapability{}, "", "", since{rev20241105: "listChanged"}},
	{ResourcesCapability{}, "", "", since{rev20241105: "subscribe listChanged"}},
	{TasksCapability{}, "", "", since{rev20251125: "list cancel requests", rev20260728: "gone"}},

	{EmptyParams{}, "", "params of InitializedNotification", since{rev20241105: "_meta", rev20260728: "gone"}},
	{EmptyParams{}, "", "params of DiscoverRequest", since{rev20260728: "_meta"}},
	{EmptyParams{}, "", "params of ToolListChangedNotification", since{rev20241105: "_meta"}},
	{EmptyResult{}, "", "Result", since{rev20241105: "_meta", rev20260728: "+resultType"}},
	{EmptyResult{}, "", "SubscriptionsListenResult", since{rev20260728: "_meta resultType"}},
	{InitializeParams{}, "", "params of InitializeRequest", since{rev20241105: "protocolVersion capabilities clientInfo _meta", rev20260728: "gone"}},
	{InitializeResult{}, "", "InitializeResult", since{rev20241105: "protocolVersion capabilities serverInfo instructions _meta", rev20260728: "gone"}},
	{DiscoverResult{}, "", "DiscoverResult", since{rev20260728: "supportedVersions capabilities instructions _meta resultType ttlMs cacheScope"}},
	{ListParams{}, "", "params of ListToolsRequest", since{rev20241105: "cursor _meta"}},
	{ListParams{}, "", "params of ListTasksRequest", since{rev20251125: "cursor _meta", rev20260728: "gone"}},

	{Tool{}, "", "Tool", since{rev20241105: "name description inputSchema", rev20250326: "+annotations",
		rev20250618: "+_meta +outputSchema +title", rev20251125: "+execution +icons", rev20260728: "-execution"}},
	{ToolAnnotations{}, "", "ToolAnnotations", since{rev20250326: "title readOnlyHint destructiveHint idempotentHint openWorldHint"}},
	{ToolExecution{}, "", "ToolExecution", since{rev20251125: "taskSupport", rev20260728: "gone"}},
	{ListToolsResult{}, "", "ListToolsResult", since{rev20241105: "tools nextCursor _meta", rev20260728: "+resultType +ttlMs +cacheScope"}},
	{CallToolParams{}, "", "params of CallToolRequest", since{
		rev20241105: "name arguments _meta", rev20251125: "+task", rev20260728: "-task +inputResponses +requestState"}},
	{CallToolResult{}, "", "CallToolResult", since{
		rev20241105: "content isError _meta", rev20250618: "+structuredContent", rev20260728: "+resultType"}},

	{Resource{}, "", "Resource", since{rev20241105: "uri name description mimeType size annotations",
		rev20250618: "+_meta +title", rev20251125: "+icons"}},
	{ResourceTemplate{}, "", "ResourceTemplate", since{rev20241105: "uriTemplate name description mimeType annotations",
		rev20250618: "+_meta +title", rev20251125: "+icons"}},
	{ListResourcesResult{}, "", "ListResourcesResult", since{rev20241105: "resources nextCursor _meta", rev20260728: "+resultType +ttlMs +cacheScope"}},
	{ListResourceTemplatesResult{}, "", "ListResourceTemplatesResult", since{
		rev20241105: "resourceTemplates nextCursor _meta", rev20260728: "+resultType +ttlMs +cacheScope"}},
	{ReadResourceParams{}, "", "params of ReadResourceRequest", since{rev20241105: "uri _meta", rev20260728: "+inputResponses +requestState"}},
	{ReadResourceResult{}, "", "ReadResourceResult", since{rev20241105: "contents _meta", rev20260728: "+resultType +ttlMs +cacheScope"}},
	{SubscribeParams{}, "", "params of SubscribeRequest", since{rev20241105: "uri _meta", rev20260728: "gone"}},
	{SubscribeParams{}, "", "params of UnsubscribeRequest", since{rev20241105: "uri _meta", rev20260728: "gone"}},
	{ResourceUpdatedParams{}, "", "params of ResourceUpdatedNotification", since{rev20241105: "uri _meta"}},

	{Prompt{}, "", "Prompt", since{rev20241105: "name description arguments", rev20250618: "+_meta +title", rev20251125: "+icons"}},
	{PromptArgument{}, "", "PromptArgument", since{rev20241105: "name description required", rev20250618: "+title"}},
	{ListPromptsResult{}, "", "ListPromptsResult", since{rev20241105: "prompts nextCursor _meta", rev20260728: "+resultType +ttlMs +cacheScope"}},
	{GetPromptParams{}, "", "params of GetPromptRequest", since{rev20241105: "name arguments _meta", rev20260728: "+inputResponses +requestState"}},
	{GetPromptResult{}, "", "GetPromptResult", since{rev20241105: "description messages _meta", rev20260728: "+resultType"}},
	{PromptMessage{}, "", "PromptMessage", since{rev20241105: "role content"}},
	{CompleteParams{}, "", "params of CompleteRequest", since{rev20241105: "ref argument _meta", rev20250618: "+context"}},
	{CompleteReference{}, "ref/prompt", "PromptReference", since{rev20241105: "type name", rev20250618: "+title"}},
	{CompleteReference{}, "ref/resource", "ResourceReference ResourceTemplateReference", since{rev20241105: "type uri"}},
	{CompleteResult{}, "", "CompleteResult", since{rev20241105: "completion _meta", rev20260728: "+resultType"}},
	{Completion{}, "", "", since{rev20241105: "values total hasMore"}},

	{CancelledParams{}, "", "params of CancelledNotification", since{rev20241105: "requestId reason _meta"}},
	{ProgressParams{}, "", "params of ProgressNotification", since{rev20241105: "progressToken progress total _meta", rev20250326: "+message"}},
	{SetLevelParams{}, "", "params of SetLevelRequest", since{rev20241105: "level _meta", rev20260728: "gone"}},
	{LogParams{}, "", "params of LoggingMessageNotification", since{rev20241105: "level logger data _meta"}},

	{ElicitParams{}, "form", "params of ElicitRequest", since{rev20250618: "message requestedSchema _meta", rev20251125: "+mode +task", rev20260728: "-task -_meta"}},
	{ElicitParams{}, "url", "params of ElicitRequest", since{rev20251125: "message mode url elicitationId task _meta", rev20260728: "-elicitationId -task -_meta"}},
	{ElicitResult{}, "", "ElicitResult", since{rev20250618: "action content _meta", rev20260728: "-_meta"}},
	{ElicitationCompleteParams{}, "", "params of ElicitationCompleteNotification", since{rev20251125: "elicitationId _meta", rev20260728: "gone"}},
	{CreateMessageParams{}, "", "params of CreateMessageRequest", since{
		rev20241105: "messages modelPreferences systemPrompt includeContext temperature maxTokens stopSequences metadata _meta",
		rev20251125: "+tools +toolChoice +task", rev20260728: "-task -_meta"}},
	{SamplingMessage{}, "", "SamplingMessage", since{rev20241105: "role content", rev20251125: "+_meta"}},
	{ModelPreferences{}, "", "ModelPreferences", since{rev20241105: "hints costPriority speedPriority intelligencePriority"}},
	{ToolChoice{}, "", "ToolChoice", since{rev20251125: "mode"}},
	{CreateMessageResult{}, "", "CreateMessageResult", since{rev20241105: "role content model stopReason _meta"}},
	{Root{}, "", "Root", since{rev20241105: "uri name", rev20250618: "+_meta"}},
	{ListRootsResult{}, "", "ListRootsResult", since{rev20241105: "roots _meta", rev20260728: "-_meta"}},

	{InputRequiredResult{}, "", "InputRequiredResult", since{rev20260728: "resultType inputRequests requestState _meta"}},
	{InputRequest{}, "", "InputRequest", since{rev20260728: "method params"}},
	{SubscriptionFilter{}, "", "SubscriptionFilter", since{
		rev20260728: "toolsListChanged promptsListChanged resourcesListChanged resourceSubscriptions"}},
	{ListenParams{}, "", "params of SubscriptionsListenRequest", since{rev20260728: "notifications _meta"}},
	{ListenParams{}, "", "params of SubscriptionsAcknowledgedNotification", since{rev20260728: "notifications _meta"}},

	{TaskMetadata{}, "", "TaskMetadata", since{rev20251125: "ttl", rev20260728: "gone"}},
	{Task{}, "", "Task", since{rev20251125: "taskId status statusMessage createdAt lastUpdatedAt ttl pollInterval", rev20260728: "gone"}},
	{TaskParams{}, "", "params of CancelTaskRequest", since{rev20251125: "taskId _meta", rev20260728: "gone"}},
	{TaskResult{}, "", "GetTaskResult", since{
		rev20251125: "taskId status statusMessage createdAt lastUpdatedAt ttl pollInterval _meta", rev20260728: "gone"}},
	{TaskResult{}, "", "params of TaskStatusNotification", since{
		rev20251125: "taskId status statusMessage createdAt lastUpdatedAt ttl pollInterval _meta", rev20260728: "gone"}},
	{CreateTaskResult{}, "", "CreateTaskResult", since{rev20251125: "task _meta", rev20260728: "gone"}},
	{ListTasksResult{}, "", "ListTasksResult", since{rev20251125: "tasks nextCursor _meta", rev20260728: "gone"}},

	{MissingCapabilityData{}, "", "", since{rev20260728: "requiredCapabilities"}},
	{UnsupportedVersionData{}, "", "", since{rev20260728: "supported requested"}},
	{URLElicitationRequiredData{}, "", "", since{rev20251125: "elicitations", rev20260728: "gone"}},
}

// at returns the members at a revision; ok is false where the type is not
// defined.
func (pt protocolType) at(rev *revision) (members []string, ok bool) {
	for _, r := range revisions[:rev.index+1] {
		change, named := pt.members[r]
		ok = ok || named
		if change == "gone" {
			return nil, false
		}
		for _, word := range strings.Fields(change) {
			if name, gone := strings.CutPrefix(word, "-"); gone {
				members = slices.DeleteFunc(members, func(m string) bool { return m == name })
			} else {
				members = append(members, strings.TrimPrefix(word, "+"))
			}
		}
	}
	slices.Sort(members)
	return members, ok
}

// filled returns a pointer to a value of the type in which every member is
// set.
func (pt protocolType) filled(rev *revision) any {
	v := reflect.New(reflect.TypeOf(pt.value))
	fill(v.Elem(), rev, 0)
	switch x := v.Interface().(type) {
	case *Content:
		x.Type = pt.kind
	case *CompleteReference:
		x.Type = pt.kind
	case *ElicitParams:
		x.Mode = pt.kind
	case *ResourceContents:
		if pt.kind == "text" {
			x.Blob = nil
		}
	}
	return v.Interface()
}

// fillers are values for members that cannot be just anything.
var fillers = map[string]string{
	"Theme": "dark", "CacheScope": "public", "ResultType": "complete", "TaskSupport": "optional", "IncludeContext": "none",
	"Action": "accept", "ToolChoice.Mode": "required", "ElicitParams.Mode": "form", "CompleteReference.Type": "ref/prompt",
	"Content.Type": "text", "URL": "https://example.org/", "Method": methodElicit,

	"InputSchema":     `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`,
	"OutputSchema":    `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`,
	"RequestedSchema": `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`,
	"Params":          `{"message":"m","requestedSchema":{"type":"object","properties":{}}}`,
	"Content":         `{"a":"x","b":2,"c":true}`,
	"Data":            `[1,null]`,
}

// fill sets every member of v to a value that rev allows.
func fill(v reflect.Value, rev *revision, depth int) {
	switch x := v.Addr().Interface().(type) {
	case *Role:
		*x = "user"
	case *LoggingLevel:
		*x = "info"
	case *TaskStatus:
		*x = "working"
	case *ID:
		*x = StringID("t")
	case *Meta:
		*x = Meta{"example.org/k": json.RawMessage("1")}
		x.Set(metaProtocolVersion, rev.version)
		x.Set(metaClientCapabilities, ClientCapabilities{})
		x.Set(metaSubscriptionID, "s")
		x.Set(metaProgressToken, 7)
	case *InputResponses:
		*x = InputResponses{"k": json.RawMessage(`{"action":"decline"}`)}
	case *map[string]json.RawMessage:
		*x = map[string]json.RawMessage{"org.example/x": json.RawMessage(`{"y":1}`)}
	case *map[string]map[string]struct{}:
		*x = map[string]map[string]struct{}{}
	case *json.RawMessage:
		*x = json.RawMessage(`{"a":1}`)
	case *[]byte:
		*x = []byte{0, 0xff}
	default:
		fillKind(v, rev, depth)
	}
}

func fillKind(v reflect.Value, rev *revision, depth int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64:
		v.SetInt(5)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), rev, depth+1)
	case reflect.Slice:
		n := 1
		if depth > 8 { // a tool result holds content
			n = 0
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(v.Index(i), rev, depth+1)
		}
	case reflect.Map:
		key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, rev, depth+1)
		fill(elem, rev, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, elem)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || f.Name == "Raw" {
				continue
			}
			fill(v.Field(i), rev, depth+1)
			value, ok := fillers[v.Type().Name()+"."+f.Name]
			if !ok {
				value, ok = fillers[f.Name]
			}
			switch {
			case ok && f.Type.Kind() == reflect.String:
				v.Field(i).SetString(value)
			case ok && f.Type == typeRaw:
				v.Field(i).SetBytes([]byte(value))
			}
		}
	default:
		panic("fill: " + v.Type().String())
	}
}

// topMembers returns the sorted names of an object's members.
func topMembers(t *testing.T, object []byte) []string {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		t.Fatalf("%v in %s", err, object)
	}
	return slices.Sorted(maps.Keys(members))
}

func TestMembersByRevision(t *testing.T) {
	for _, pt := range protocolTypes {
		for _, rev := range revisions {
			want, ok := pt.at(rev)
			if !ok {
				continue
			}
			name := fmt.Sprintf("%T %s at %s", pt.value, pt.kind, rev.version)
			v := pt.filled(rev)
			out, err := encodeAt(nil, v, rev)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if got := topMembers(t, out); !slices.Equal(got, want) {
				t.Errorf("%s:\n got %q\nwant %q", name, got, want)
			}
			// What is written is read, and written again the same.
			back := reflect.New(reflect.TypeOf(pt.value)).Interface()
			if err := decodeAt(out, back, rev, true); err != nil {
				t.Errorf("%s: %v in %s", name, err, out)
			}
			if again, err := encodeAt(nil, back, rev); err != nil || !bytes.Equal(again, out) {
				t.Errorf("%s: %s\nbecame %s, %v", name, out, again, err)
			}
		}
	}
}

// TestEveryTypeIsListed keeps protocolTypes complete: every exported struct of
// this file's types that has an mcp tag or is used by one that has.
func TestEveryTypeIsListed(t *testing.T) {
	listed := map[reflect.Type]bool{
		reflect.TypeFor[CacheHints](): true, reflect.TypeFor[CompleteArgument](): true, reflect.TypeFor[CompleteContext](): true,
		reflect.TypeFor[ModelHint](): true, reflect.TypeFor[kept](): true, reflect.TypeFor[ID](): true,
	}
	for _, pt := range protocolTypes {
		listed[reflect.TypeOf(pt.value)] = true
	}
	var walk func(reflect.Type)
	walk = func(rt reflect.Type) {
		switch rt.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(rt.Elem())
		case reflect.Struct:
			if rt.Name() != "" && !listed[rt] {
				t.Errorf("%s is not in protocolTypes", rt)
				listed[rt] = true
			}
			for i := range rt.NumField() {
				if f := rt.Field(i); f.IsExported() && f.Type != rt && f.Type != reflect.SliceOf(rt) {
					walk(f.Type)
				}
			}
		}
	}
	for _, pt := range protocolTypes {
		walk(reflect.TypeOf(pt.value))
	}
	for _, v := range paramsTypes {
		walk(reflect.TypeOf(v))
	}
}

func TestRevisions(t *testing.T) {
	for i, rev := range revisions {
		if rev.index != i || revisionOf(rev.version) != rev || rev.modern != (i == 4) || rev.batches != (i == 1) {
			t.Errorf("%+v at %d", *rev, i)
		}
		for j, other := range revisions {
			if rev.atLeast(other) != (i >= j) {
				t.Errorf("%s at least %s: %v", rev.version, other.version, i < j)
			}
		}
	}
	for _, version := range []string{"", "2025-06-19", "2099-01-01", "2026-07-28 ", "draft"} {
		if rev := revisionOf(version); rev != nil {
			t.Errorf("%q is %s", version, rev.version)
		}
	}
	if revLatest.version != LatestVersion || revLegacy.modern {
		t.Error("newest revisions are wrong")
	}
}

// TestMethodDefined says which revisions, as digits 1 to 5, have a method or
// notification to a server and to a client.
func TestMethodDefined(t *testing.T) {
	want := map[string][2]string{
		"initialize": {"1234", ""}, "server/discover": {"5", ""}, "ping": {"1234", "1234"}, "logging/setLevel": {"1234", ""},
		"tools/list": {"12345", ""}, "tools/call": {"12345", ""}, "prompts/list": {"12345", ""}, "prompts/get": {"12345", ""},
		"resources/list": {"12345", ""}, "resources/templates/list": {"12345", ""}, "resources/read": {"12345", ""},
		"resources/subscribe": {"1234", ""}, "resources/unsubscribe": {"1234", ""}, "completion/complete": {"12345", ""},
		"subscriptions/listen": {"5", ""}, "tasks/get": {"4", "4"}, "tasks/result": {"4", "4"}, "tasks/list": {"4", "4"},
		"tasks/cancel": {"4", "4"}, "sampling/createMessage": {"", "1234"}, "roots/list": {"", "1234"}, "elicitation/create": {"", "34"},
		"notifications/initialized": {"1234", ""}, "notifications/cancelled": {"12345", "12345"},
		"notifications/progress": {"1234", "12345"}, "notifications/message": {"", "12345"},
		"notifications/tools/list_changed": {"", "12345"}, "notifications/prompts/list_changed": {"", "12345"},
		"notifications/resources/list_changed": {"", "12345"}, "notifications/resources/updated": {"", "12345"},
		"notifications/roots/list_changed": {"1234", ""}, "notifications/subscriptions/acknowledged": {"", "5"},
		"notifications/elicitation/complete": {"", "4"}, "notifications/tasks/status": {"4", "4"},
		"tasks/update": {"", ""}, "notifications/tasks": {"", ""}, "Ping": {"", ""}, "": {"", ""},
	}
	for name := range methods {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is in the table of methods only", name)
		}
	}
	for name, revs := range want {
		for side, toServer := range []bool{true, false} {
			for i, rev := range revisions {
				expect := strings.Contains(revs[side], fmt.Sprint(i+1))
				if got := methodDefined(name, rev, toServer); got != expect {
					t.Errorf("%s at %s, to a server %v: %v", name, rev.version, toServer, got)
				}
			}
		}
	}
}

func TestLoggingLevels(t *testing.T) {
	shows(t, "logging.levels")
	for i, level := range strings.Fields("debug info notice warning error critical alert emergency") {
		if got := LoggingLevel(level).severity(); got != i {
			t.Errorf("%s: %d", level, got)
		}
	}
	for _, level := range []LoggingLevel{"", "warn", "Debug", "fatal"} {
		if got := level.severity(); got != -1 {
			t.Errorf("%s: %d", level, got)
		}
	}
}

func TestMeta(t *testing.T) {
	m := Meta{"example.org/n": json.RawMessage("9007199254740993"), "example.org/o": json.RawMessage(`{"roots":{},"Roots":5}`)}
	var n int64
	if ok, err := m.Get("example.org/n", &n); !ok || err != nil || n != 9007199254740993 {
		t.Error(ok, err, n)
	}
	var caps ClientCapabilities
	if ok, err := m.Get("example.org/o", &caps); !ok || err != nil || caps.Roots == nil {
		t.Error(ok, err, caps)
	}
	if ok, err := m.Get("example.org/absent", &n); ok || err != nil {
		t.Error(ok, err)
	}
	if ok, err := m.Get("example.org/o", &n); !ok || err == nil || err.Error() != "example.org/o must be a number" {
		t.Error(ok, err)
	}
	m.Set("example.org/c", Text("<"))
	m.Set("example.org/r", json.RawMessage("[1.50]"))
	if got := string(m["example.org/c"]) + string(m["example.org/r"]); got != `{"type":"text","text":"<"}[1.50]` {
		t.Error(got)
	}
	defer func() {
		if recover() == nil {
			t.Error("Set of what has no JSON does not panic")
		}
	}()
	m.Set("example.org/f", func() {})
}

// A decodeTest says what a document reads as.
type decodeTest struct {
	v    any
	rev  *revision
	doc  string
	want string // the error, or what it encodes to
}

func (tt decodeTest) run(t *testing.T, strict bool) {
	t.Helper()
	p := reflect.New(reflect.TypeOf(tt.v)).Interface()
	got := ""
	if err := decodeAt([]byte(tt.doc), p, tt.rev, strict); err != nil {
		got = err.Error()
	} else if out, err := encodeAt(nil, p, tt.rev); err != nil {
		got = "encoding: " + err.Error()
	} else {
		got = string(out)
	}
	if got != tt.want {
		t.Errorf("%T at %s %s:\n got %s\nwant %s", tt.v, tt.rev.version, tt.doc, got, tt.want)
	}
}

// TestDecodeParams reads params from a peer, who must keep to the revision.
func TestDecodeParams(t *testing.T) {
	shows(t, "progress.token.type", "elicit.mode.default")
	for _, tests := range [][]decodeTest{callParamsTests, otherParamsTests} {
		for _, tt := range tests {
			tt.run(t, true)
		}
	}
}

var (
	callParamsTests = []decodeTest{
		{CallToolParams{}, rev20251125, `{"name":"a","Name":"b","paramſ":1,"ARGUMENTS":{},"arguments":{"A":1,"a":2}}`, `{"name":"a","arguments":{"A":1,"a":2}}`},
		{CallToolParams{}, rev20251125, `{"name":"a","name":"b"}`, "params.name is given twice"},
		{CallToolParams{}, rev20251125, `{"n\u0061me":"a","name":"a"}`, "params.name is given twice"},
		{CallToolParams{}, rev20251125, `{"name":"a","other":1,"other":2}`, `{"name":"a"}`},
		{CallToolParams{}, rev20251125, `{}`, "params.name is missing"},
		{CallToolParams{}, rev20251125, ``, "params.name is missing"},
		{CallToolParams{}, rev20251125, `null`, "params must not be null"},
		{CallToolParams{}, rev20251125, `[]`, "params must be an object"},
		{CallToolParams{}, rev20251125, `"x"`, "params must be an object"},
		{CallToolParams{}, rev20251125, `7`, "params must be an object"},
		{CallToolParams{}, rev20251125, `{"name":null}`, "params.name must not be null"},
		{CallToolParams{}, rev20251125, `{"name":7}`, "params.name must be a string"},
		{CallToolParams{}, rev20251125, `{"name":"","arguments":null}`, "params.arguments must be an object"},
		{CallToolParams{}, rev20251125, `{"name":"","arguments":[]}`, "params.arguments must be an object"},
		{CallToolParams{}, rev20251125, `{"name":"","_meta":null}`, "params._meta must not be null"},
		{CallToolParams{}, rev20251125, `{"name":"","_meta":[]}`, "params._meta must be an object"},
		{CallToolParams{}, rev20251125, `{"name":"","_meta":{"a":1,"a":2}}`, `params._meta["a"] is given twice`},
		{CallToolParams{}, rev20251125, `{"name":"","_meta":{},"arguments":{}}`, `{"name":"","arguments":{},"_meta":{}}`},
		{CallToolParams{}, rev20251125, `{"name":"x"`, "params: ',' or '}' expected at offset 11"},
		{CallToolParams{}, rev20251125, `{"name":"x"} {}`, "params: text after the value at offset 13"},
		{CallToolParams{}, rev20251125, `{"name":"x","arguments":{"a":tru}}`, "params: invalid value at offset 29"},
		// of other revisions: as unknown members, whatever they hold
		{CallToolParams{}, rev20250618, `{"name":"x","task":5,"requestState":5,"requestState":6}`, `{"name":"x"}`},
		{CallToolParams{}, rev20260728, `{"name":"x","task":5,"requestState":""}`, `{"name":"x","requestState":""}`},
		{CallToolParams{}, rev20260728, `{"name":"x","requestState":null}`, "params.requestState must not be null"},
		{CallToolParams{}, rev20260728, `{"name":"x","inputResponses":{"k":null,"l":{}}}`, `{"name":"x","inputResponses":{"k":null,"l":{}}}`},
	}
	otherParamsTests = []decodeTest{
		{ListParams{}, rev20241105, ``, `{}`},
		{ListParams{}, rev20241105, `{"cursor":""}`, `{"cursor":""}`},
		{ListParams{}, rev20241105, `{"cursor":null}`, "params.cursor must not be null"},
		{ListParams{}, rev20241105, `{"cursor":0}`, "params.cursor must be a string"},
		{InitializeParams{}, rev20241105, `{"protocolVersion":7}`, "params.protocolVersion must be a string"},
		{InitializeParams{}, rev20241105, `{"protocolVersion":"","clientInfo":{"name":"n","version":"v"}}`, "params.capabilities is missing"},
		{InitializeParams{}, rev20241105, `{"protocolVersion":"","capabilities":{"roots":{"listChanged":false}},"clientInfo":{"name":"n"}}`, "params.clientInfo.version is missing"},
		{InitializeParams{}, rev20241105, `{"protocolVersion":"","capabilities":{"roots":null},"clientInfo":{"name":"n","version":"v"}}`, "params.capabilities.roots must not be null"},
		{ProgressParams{}, rev20250326, `{"progressToken":"","progress":0}`, `{"progressToken":"","progress":0}`},
		{ProgressParams{}, rev20250326, `{"progressToken":9007199254740993,"progress":1e2,"total":0.5}`, `{"progressToken":9007199254740993,"progress":100,"total":0.5}`},
		{ProgressParams{}, rev20250326, `{"progressToken":1.5,"progress":0}`, "params.progressToken must be a string or an integer"},
		{ProgressParams{}, rev20250326, `{"progressToken":null,"progress":0}`, "params.progressToken must not be null"},
		{ProgressParams{}, rev20250326, `{"progressToken":0,"progress":1e400}`, "params.progress must be a number within the range of float64"},
		{LogParams{}, rev20250326, `{"level":"info","data":null}`, `{"level":"info","data":null}`},
		{LogParams{}, rev20250326, `{"level":"info"}`, "params.data is missing"},
		{TaskResult{}, rev20251125, `{"taskId":"a","status":"working","createdAt":"","lastUpdatedAt":"","ttl":null}`, `{"taskId":"a","status":"working","createdAt":"","lastUpdatedAt":"","ttl":null}`},
		{TaskResult{}, rev20251125, `{"taskId":"a","status":"working","createdAt":"","lastUpdatedAt":""}`, "params.ttl is missing"},
		{TaskResult{}, rev20251125, `{"taskId":"a","status":"working","createdAt":"","lastUpdatedAt":"","ttl":1e3,"pollInterval":5.0}`, `{"taskId":"a","status":"working","createdAt":"","lastUpdatedAt":"","ttl":1000,"pollInterval":5}`},
		{TaskResult{}, rev20251125, `{"taskId":"a","status":"working","createdAt":"","lastUpdatedAt":"","ttl":1.5}`, "params.ttl must be an integer within the range of int64"},
		{TaskResult{}, rev20251125, `{"taskId":"a","status":"working","createdAt":"","lastUpdatedAt":"","ttl":9223372036854775808}`, "params.ttl must be an integer within the range of int64"},
		{CompleteParams{}, rev20250618, `{"ref":{"type":"ref/prompt","name":"","uri":5},"argument":{"name":"","value":""}}`, `{"ref":{"type":"ref/prompt","name":""},"argument":{"name":"","value":""}}`},
		{CompleteParams{}, rev20250618, `{"ref":{"name":"","type":"ref/resource"},"argument":{"name":"","value":""}}`, "params.ref.uri is missing"},
		{CompleteParams{}, rev20250618, `{"ref":{"type":"ref/tool"},"argument":{"name":"","value":""}}`, `params.ref.type cannot be "ref/tool"`},
		{CompleteParams{}, rev20250618, `{"ref":{},"argument":{"name":"","value":""}}`, "params.ref.type is missing"},
		{CompleteParams{}, rev20250618, `{"ref":{"type":5},"argument":{"name":"","value":""}}`, "params.ref.type must be a string"},
		{GetPromptParams{}, rev20250618, `{"name":"","arguments":{"a":1}}`, `params.arguments["a"] must be a string`},
		{GetPromptParams{}, rev20250618, `{"name":"","arguments":{"a":"1","a":"2"}}`, `params.arguments["a"] is given twice`},
		{ElicitParams{}, rev20251125, `{"message":"m"}`, "params.requestedSchema is missing"},
		{ElicitParams{}, rev20251125, `{"message":"m","mode":"url","url":"u"}`, "params.elicitationId is missing"},
		{ElicitParams{}, rev20260728, `{"message":"m","mode":"url","url":"u"}`, `{"mode":"url","message":"m","url":"u"}`},
		{ElicitParams{}, rev20250618, `{"message":"m","mode":"url","url":"u","requestedSchema":{}}`, `{"message":"m","requestedSchema":{}}`},
		{ElicitParams{}, rev20251125, `{"message":"m","url":5,"requestedSchema":{}}`, `{"message":"m","requestedSchema":{}}`},
		{ElicitParams{}, rev20251125, `{"message":"m","mode":"form","url":"u","requestedSchema":{}}`, `{"mode":"form","message":"m","requestedSchema":{}}`},
		{ElicitParams{}, rev20251125, `{"message":"m","mode":"voice"}`, `params.mode cannot be "voice"`},
		{ElicitParams{}, rev20251125, `{"message":"m","mode":5}`, `params.mode must be a string`},
		{ElicitParams{}, rev20260728, `{"message":"m","requestedSchema":true}`, "params.requestedSchema must be an object"},
		{CreateMessageParams{}, rev20251125, `{"maxTokens":1,"messages":[{"role":"user","content":{"type":"text"}}]}`, "params.messages[0].content.text is missing"},
		{CreateMessageParams{}, rev20251125, `{"maxTokens":1,"messages":[{"role":"user","content":[{"text":""}]}]}`, "params.messages[0].content[0].type is missing"},
		{CreateMessageParams{}, rev20251125, `{"maxTokens":1,"messages":[null]}`, "params.messages[0] must not be null"},
		{CreateMessageParams{}, rev20251125, `{"maxTokens":1,"messages":[{"role":"user","content":{"type":"tool_result","toolUseId":"","content":[{"type":"image","data":"?","mimeType":""}]}}]}`,
			"params.messages[0].content.content[0].data must be base64"},
		{CreateMessageParams{}, rev20251125, `{"maxTokens":1,"messages":[{"role":"user","content":{"type":"tool_result","toolUseId":"","content":[{"type":"resource","resource":null}]}}]}`,
			"params.messages[0].content.content[0].resource must not be null"},
		{ListenParams{}, rev20260728, `{"notifications":{"toolsListChanged":1}}`, "params.notifications.toolsListChanged must be true or false"},
	}
)

// TestDecodeResult reads results, of which what is usable is used.
func TestDecodeResult(t *testing.T) {
	shows(t, "base.result.open-shape", "completion.client.partial")
	tests := []decodeTest{
		{CallToolResult{}, rev20241105, `{}`, `{"content":[]}`},
		{CallToolResult{}, rev20241105, `{"content":null,"isError":null,"_meta":null}`, `{"content":[]}`},
		{CallToolResult{}, rev20250618, `{"content":[null,{"type":"text"}],"structuredContent":null}`, `{"content":[{"type":"text","text":""}]}`},
		{CallToolResult{}, rev20260728, `{"content":[],"structuredContent":null}`, `{"content":[],"structuredContent":null}`},
		{CallToolResult{}, rev20241105, `{"content":[{"type":"text","text":"a"}],"structuredContent":{},"resultType":5,"toolResult":{}}`, `{"content":[{"type":"text","text":"a"}]}`},
		{CallToolResult{}, rev20241105, `{"content":{}}`, "result.content must be an array"},
		{CallToolResult{}, rev20241105, `{"content":[],"content":[]}`, "result.content is given twice"},
		{CallToolResult{}, rev20251125, `{"content":[{"type":"smell","x":[1.0]},{"kind":1}]}`, `{"content":[{"type":"smell","x":[1.0]},{"kind":1}]}`},
		{CallToolResult{}, rev20251125, `{"content":[{"type":"image","data":"AAE"}]}`, "result.content[0].data must be base64"},
		{CallToolResult{}, rev20251125, `{"content":[{"type":"resource","resource":null}]}`, `{"content":[{"type":"resource","resource":{"uri":"","text":""}}]}`},
		{ListToolsResult{}, rev20241105, `{"tools":null,"nextCursor":null}`, `{"tools":[]}`},
		{ListToolsResult{}, rev20241105, `{"tools":[null,{"name":"t"}],"nextCursor":""}`, `{"tools":[{"name":"t","inputSchema":{"type":"object"}}],"nextCursor":""}`},
		{ListToolsResult{}, rev20241105, `{"tools":[{"name":5}]}`, "result.tools[0].name must be a string"},
		{ListToolsResult{}, rev20260728, `{"tools":[],"ttlMs":-5,"cacheScope":"public"}`, `{"tools":[],"ttlMs":0,"cacheScope":"public"}`},
		{ListToolsResult{}, rev20260728, `{"tools":[],"ttlMs":5}`, `{"tools":[],"ttlMs":5,"cacheScope":"private"}`},
		{ListToolsResult{}, rev20260728, `{"tools":[]}`, `{"tools":[]}`},
		{CompleteResult{}, rev20241105, `{}`, `{"completion":{"values":[]}}`},
		{CompleteResult{}, rev20241105, `{"completion":{}}`, `{"completion":{"values":[]}}`},
		{ReadResourceResult{}, rev20241105, `{"contents":[{"uri":"u"},{"uri":"u","blob":""}]}`, `{"contents":[{"uri":"u","text":""},{"uri":"u","blob":""}]}`},
		{CreateMessageResult{}, rev20250618, `{"role":"user","content":[{"type":"text","text":"a"}],"model":"m"}`, `{"role":"user","content":{"type":"text","text":"a"},"model":"m"}`},
		{InitializeResult{}, rev20241105, `{"protocolVersion":"2024-11-05","capabilities":{"tools":{"listChanged":null},"logging":{"x":1}},"serverInfo":null}`,
			`{"protocolVersion":"2024-11-05","capabilities":{"logging":{},"tools":{}},"serverInfo":{"name":"","version":""}}`},
		{InputRequiredResult{}, rev20260728, `{"resultType":"input_required","inputRequests":{"a":null}}`, `{"resultType":"input_required","inputRequests":{"a":{"method":""}}}`},
	}
	for _, tt := range tests {
		tt.run(t, false)
	}
}

// TestDeepContent reads blocks in blocks, each with its type at the end, where
// looking for it must not cost the square of the depth.
func TestDeepContent(t *testing.T) {
	const deep = 4000
	inner := strings.Repeat(`{"content":[`, deep) + strings.Repeat(`],"toolUseId":"u","type":"tool_result"}`, deep)
	doc := `{"role":"user","content":{"content":[` + inner + `],"toolUseId":"u","type":"tool_result"}}`
	var m SamplingMessage
	if err := decodeAt([]byte(doc), &m, rev20251125, true); err != nil {
		t.Fatal(err)
	}
	if got := m.Content[0].Content[0]; got.Type != "tool_result" || string(got.Raw) != inner {
		t.Errorf("%.200s", got.Raw)
	}
	if out, err := encodeAt(nil, m, rev20251125); err != nil || !jsonEqual(t, out, []byte(doc)) {
		t.Errorf("%v, %.200s", err, out)
	}
}

// TestNilResource keeps a careless peer from crashing whoever reads a result.
func TestNilResource(t *testing.T) {
	for _, doc := range []string{`{"content":[{"type":"resource"}]}`, `{"content":[{"type":"resource","resource":null}]}`} {
		var res CallToolResult
		if err := decodeAt([]byte(doc), &res, rev20251125, false); err != nil || res.Content[0].Resource == nil {
			t.Errorf("%s: %v, %+v", doc, err, res)
		}
	}
}

func TestEncodeAt(t *testing.T) {
	big := json.RawMessage(`{"a": 9007199254740993,
	"b":1.10, "c":1e309}`)
	yes, no := true, false
	tests := []struct {
		v    any
		rev  *revision
		want string // an error if it does not begin with { or [
	}{
		{Text("<a>&\u2028\u2029\x00\xff"), rev20241105, `{"type":"text","text":"<a>&\u2028\u2029\u0000` + "\uFFFD" + `"}`},
		{CallToolResult{}, rev20241105, `{"content":[]}`},
		{(*CallToolResult)(nil), rev20241105, `{"content":[]}`},
		{CallToolResult{Content: []Content{Text("")}, StructuredContent: big, IsError: true}, rev20250618,
			`{"content":[{"type":"text","text":""}],"structuredContent":{"a":9007199254740993,"b":1.10,"c":1e309},"isError":true}`},
		{CallToolResult{StructuredContent: big}, rev20250326, `{"content":[]}`},
		{CallToolResult{StructuredContent: json.RawMessage(`[1]`)}, rev20251125, `{"content":[]}`},
		{CallToolResult{StructuredContent: json.RawMessage(`[1]`)}, rev20260728, `{"content":[],"structuredContent":[1]}`},
		{CallToolResult{StructuredContent: json.RawMessage(`null`)}, rev20260728, `{"content":[],"structuredContent":null}`},
		{CallToolResult{StructuredContent: json.RawMessage(`{"a":}`)}, rev20260728, "structuredContent invalid value at offset 5"},
		{CallToolResult{Meta: Meta{}}, rev20241105, `{"content":[],"_meta":{}}`},
		{CallToolResult{Meta: Meta{"b": json.RawMessage("1"), "a": nil}}, rev20241105, `{"content":[],"_meta":{"a":null,"b":1}}`},
		{CallToolResult{Meta: Meta{"b": json.RawMessage("1 2")}}, rev20241105, `_meta["b"] text after the value at offset 2`},
		{CallToolParams{Name: "a", Arguments: json.RawMessage(` {} `)}, rev20241105, `{"name":"a","arguments":{}}`},
		{CallToolParams{Name: "a", Arguments: json.RawMessage(`[]`)}, rev20241105, "arguments must be a JSON object"},
		{Tool{Name: "a"}, rev20241105, `{"name":"a","inputSchema":{"type":"object"}}`},
		{Tool{Name: "a", OutputSchema: json.RawMessage(`{"type":"array"}`)}, rev20251125, `{"name":"a","inputSchema":{"type":"object"}}`},
		{Tool{Name: "a", OutputSchema: json.RawMessage(`{"type":"array"}`)}, rev20260728, `{"name":"a","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}`},
		{Tool{Name: "a", OutputSchema: json.RawMessage(`{"type":"object"}`)}, rev20250618, `{"name":"a","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}`},
		{ToolAnnotations{ReadOnlyHint: &no, OpenWorldHint: &yes}, rev20250326, `{"readOnlyHint":false,"openWorldHint":true}`},
		{[]Tool(nil), rev20241105, `[]`},
		{[]Tool{{Name: "a"}}, rev20241105, `[{"name":"a","inputSchema":{"type":"object"}}]`},
		{&ListToolsResult{NextCursor: new(string)}, rev20260728, `{"tools":[],"nextCursor":""}`},
		{ListToolsResult{CacheHints: CacheHints{CacheScope: "public"}}, rev20260728, `{"tools":[],"ttlMs":0,"cacheScope":"public"}`},
		{ListToolsResult{CacheHints: CacheHints{TTLMs: 7}}, rev20251125, `{"tools":[]}`},
		{ServerCapabilities{Tools: &ListCapability{}, Logging: new(struct{})}, rev20241105, `{"logging":{},"tools":{}}`},
		{ServerCapabilities{Tasks: &TasksCapability{Requests: map[string]map[string]struct{}{"tools": {"call": {}}}}}, rev20251125,
			`{"tasks":{"requests":{"tools":{"call":{}}}}}`},
		{Annotations{Audience: []Role{}, Priority: new(float64)}, rev20241105, `{"audience":[],"priority":0}`},
		{ProgressParams{ProgressToken: IntID(0), Progress: 1e21, Total: new(float64)}, rev20241105, `{"progressToken":0,"progress":1e+21,"total":0}`},
		{ProgressParams{ProgressToken: IntID(0), Progress: math.NaN()}, rev20241105, "progress NaN is no JSON number"},
		{LogParams{Level: "info"}, rev20241105, `{"level":"info","data":null}`},
		{ResourceContents{URI: "u", Blob: []byte{}}, rev20241105, `{"uri":"u","blob":""}`},
		{ResourceContents{URI: "u"}, rev20241105, `{"uri":"u","text":""}`},
		{Content{}, rev20260728, `content of the unknown type "" needs an object as Raw`},
		{Content{Type: "smell", Raw: json.RawMessage(`[]`)}, rev20260728, `content of the unknown type "smell" needs an object as Raw`},
		{ElicitParams{Message: "m"}, rev20250618, `{"message":"m","requestedSchema":{"type":"object","properties":{}}}`},
		{ElicitParams{Message: "m", URL: "u"}, rev20260728, `{"mode":"url","message":"m","url":"u"}`},
		{ElicitParams{Message: "m", Mode: "form"}, rev20250618, `{"message":"m","requestedSchema":{"type":"object","properties":{}}}`},
		{InputRequiredResult{}, rev20260728, `{"resultType":"input_required"}`},
		{InputRequests{"a": {Method: "roots/list"}}, rev20260728, `{"a":{"method":"roots/list"}}`},
		{InputRequests{"c": {}, "b": {}, "a": {}, "d": {}}, rev20260728, `{"a":{"method":""},"b":{"method":""},"c":{"method":""},"d":{"method":""}}`},
		{InputRequests{"a": {Method: "roots/list", Params: json.RawMessage("5")}}, rev20260728, `["a"].params must be a JSON object`},
		{InputResponses(nil), rev20260728, `{}`},
		{Task{TaskID: "a"}, rev20251125, `{"taskId":"a","status":"","createdAt":"","lastUpdatedAt":"","ttl":null}`},
		{UnsupportedVersionData{}, rev20260728, `{"supported":[],"requested":""}`},
		{map[string]any{"a": Text("<"), "b": []string(nil)}, rev20241105, `{"a":{"type":"text","text":"<"},"b":null}`},
		{json.RawMessage("[1.0,\n2]"), rev20241105, `[1.0,2]`},
		{nil, rev20241105, `null`},
	}
	for _, tt := range tests {
		out, err := encodeAt([]byte("x"), tt.v, tt.rev)
		got := strings.TrimPrefix(string(out), "x")
		if err != nil {
			if got != "" {
				t.Errorf("%T: wayOne %q after %v", tt.v, got, err)
			}
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%T at %s:\n got %s\nwant %s", tt.v, tt.rev.version, got, tt.want)
		}
	}
}

// TestContentOfOtherRevisions shows what a peer gets for content that its
// revision does not have.
func TestContentOfOtherRevisions(t *testing.T) {
	blocks := []Content{
		Audio([]byte{1}, "audio/wav"), ResourceLink(Resource{URI: "mem:/a", Name: "a"}),
		{Type: "tool_use", ID: "u", Name: "count"}, {Type: "smell", Raw: json.RawMessage(`{"type":"smell"}`)},
		Image(nil, "image/png"), EmbeddedResource(ResourceContents{URI: "mem:/b"}),
	}
	want := map[*revision]string{
		rev20241105: `{"type":"text","text":"[audio audio/wav]"} {"type":"text","text":"a: mem:/a"} {"type":"text","text":"[tool_use count]"}`,
		rev20250326: `{"type":"audio","data":"AQ==","mimeType":"audio/wav"} {"type":"text","text":"a: mem:/a"} {"type":"text","text":"[tool_use count]"}`,
		rev20250618: `{"type":"audio","data":"AQ==","mimeType":"audio/wav"} {"type":"resource_link","uri":"mem:/a","name":"a"} {"type":"text","text":"[tool_use count]"}`,
		rev20251125: `{"type":"audio","data":"AQ==","mimeType":"audio/wav"} {"type":"resource_link","uri":"mem:/a","name":"a"} {"type":"tool_use","name":"count","id":"u","input":{}}`,
	}
	want[rev20260728] = want[rev20251125]
	for rev, want := range want {
		want += ` {"type":"smell"} {"type":"image","data":"","mimeType":"image/png"} {"type":"resource","resource":{"uri":"mem:/b","text":""}}`
		got, sep := "", ""
		for _, c := range blocks {
			out, err := encodeAt(nil, c, rev)
			if err != nil {
				t.Fatal(err)
			}
			got, sep = got+sep+string(out), " "
		}
		if got != want {
			t.Errorf("at %s:\n got %s\nwant %s", rev.version, got, want)
		}
	}
}

func TestOneOrMoreBlocks(t *testing.T) {
	one, two := []Content{Text("a")}, []Content{Text("a"), Text("b")}
	a, b := `{"type":"text","text":"a"}`, `{"type":"text","text":"b"}`
	for _, rev := range revisions[1:] { // the message type has no _meta below
		many := rev.atLeast(rev20251125)
		for _, tt := range []struct {
			content []Content
			want    string
			ok      bool
		}{{nil, "[]", many}, {one, a, true}, {two, "[" + a + "," + b + "]", many}} {
			out, err := encodeAt(nil, SamplingMessage{Role: "user", Content: tt.content}, rev)
			switch {
			case (err == nil) != tt.ok:
				t.Errorf("%s, %d blocks: %v", rev.version, len(tt.content), err)
			case err != nil && err.Error() != "content must be exactly one block at "+rev.version:
				t.Error(err)
			case err == nil && string(out) != `{"role":"user","content":`+tt.want+`}`:
				t.Errorf("%s: %s", rev.version, out)
			}
		}
	}
}

// TestMarshalJSON shows that encoding/json writes and reads those of our types
// that it could not by itself, where they stand in values of others.
func TestMarshalJSON(t *testing.T) {
	shows(t, "sampling.content.array")
	type other struct {
		C []Content
		R ResourceContents
		M SamplingMessage
		S CreateMessageResult
		P *Content
	}
	v := other{
		C: []Content{Text(""), {Type: "tool_result", ToolUseID: "u"}, Image([]byte("<"), "x")}, R: ResourceContents{URI: "u"},
		M: SamplingMessage{Role: "user", Content: []Content{Text("a")}}, S: CreateMessageResult{Content: []Content{Text("a"), Text("b")}},
	}
	want := `{"C":[{"type":"text","text":""},{"type":"tool_result","toolUseId":"u","content":[]},{"type":"image","data":"PA==","mimeType":"x"}],` +
		`"R":{"uri":"u","text":""},"M":{"role":"user","content":{"type":"text","text":"a"}},` +
		`"S":{"role":"","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"model":""},"P":null}`
	out, err := json.Marshal(v)
	if err != nil || string(out) != want {
		t.Errorf("%s\n%v", out, err)
	}
	var back other
	if err := json.Unmarshal([]byte(want), &back); err != nil {
		t.Fatal(err)
	}
	if again, err := json.Marshal(&back); err != nil || string(again) != want {
		t.Errorf("%s\n%v", again, err)
	}
	var c Content
	doc := []byte(`{"type":"tool_use","id":"u","name":"n","input":{"a":1.0}}`)
	if err := c.UnmarshalJSON(doc); err != nil {
		t.Fatal(err)
	}
	if clear(doc); string(c.Input) != `{"a":1.0}` {
		t.Errorf("shares memory with what it was read from: %s", c.Input)
	}
	for doc, message := range map[string]string{
		`{"C":[{"type":"text","text":5}]}`: "content.text must be a string",
		`{"M":{"content":5}}`:              "message.content must be an array",
		`{"R":[]}`:                         "resource contents must be an object",
		`{"S":{"content":"x"}}`:            "result.content must be an array",
	} {
		if err := json.Unmarshal([]byte(doc), &back); err == nil || err.Error() != message {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

func TestEncodeResult(t *testing.T) {
	shows(t, "base.resulttype.present", "base.resulttype.value", "meta.result.server-info", "caching.hints", "caching.scope.value",
		"caching.ttl.nonnegative", "caching.no-hints-interim")
	info := []byte(`{"name":"s","version":"1"}`)
	meta := `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}`
	plain, cached := &stamp{serverInfo: info}, &stamp{serverInfo: info, cacheable: true, ttlMs: -1}
	tests := []struct {
		v    any
		st   *stamp
		want string // at 2026-07-28; an error if it does not begin with {
	}{
		{nil, plain, `{"resultType":"complete",` + meta + `}}`},
		{nil, &stamp{}, `{"resultType":"complete"}`},
		{nil, nil, `{}`},
		{json.RawMessage(nil), plain, `{"resultType":"complete",` + meta + `}}`},
		{map[string]int(nil), nil, `{}`},
		{EmptyResult{}, plain, `{"resultType":"complete",` + meta + `}}`},
		{(*EmptyResult)(nil), plain, `{"resultType":"complete",` + meta + `}}`},
		{EmptyResult{ResultType: "task"}, plain, `{"resultType":"task",` + meta + `}}`},
		{EmptyResult{}, nil, `{}`},
		{&CallToolResult{Meta: Meta{"a": json.RawMessage("1")}}, plain, `{"resultType":"complete","content":[],` + meta + `,"a":1}}`},
		{&CallToolResult{Meta: Meta{metaServerInfo: json.RawMessage("{}")}}, plain, `{"resultType":"complete","content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{}}}`},
		{&ListToolsResult{}, cached, `{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private",` + meta + `}}`},
		{&ListToolsResult{}, plain, `{"resultType":"complete","tools":[],` + meta + `}}`},
		{&ListToolsResult{CacheHints: CacheHints{TTLMs: 9, CacheScope: "public"}}, cached, `{"resultType":"complete","tools":[],"ttlMs":9,"cacheScope":"public",` + meta + `}}`},
		{&ListToolsResult{}, &stamp{cacheable: true, ttlMs: 5, cacheScope: "public"}, `{"resultType":"complete","tools":[],"ttlMs":5,"cacheScope":"public"}`},
		{&ListToolsResult{Tools: []Tool{{Name: "t", Meta: Meta{}}}}, plain, // what is inside is not stamped
			`{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object"},"_meta":{}}],` + meta + `}}`},
		{&CallToolResult{Content: []Content{Text("")}}, plain, `{"resultType":"complete","content":[{"type":"text","text":""}],` + meta + `}}`},
		{&InputRequiredResult{}, cached, `{"resultType":"input_required",` + meta + `}}`},
		{map[string]int{"a": 1}, cached, `{"resultType":"complete","ttlMs":0,"cacheScope":"private",` + meta + `},"a":1}`},
		{map[string]any{"_meta": map[string]int{}, "ttlMs": -3, "resultType": "x"}, cached, `{"cacheScope":"private",` + meta + `},"resultType":"x","ttlMs":0}`},
		{map[string]any{"_meta": map[string]int{"b": 1}}, plain, `{"resultType":"complete",` + meta + `,"b":1}}`},
		{map[string]any{"_meta": nil}, plain, `{"resultType":"complete",` + meta + `}}`},
		{map[string]any{"_meta": 1}, plain, "_meta of a result must be a JSON object"},
		{json.RawMessage(`{"ttlMs":1, "cacheScope":"public", "_meta":{"io.modelcontextprotocol/serverInfo":null}, "x":[1.0]}`), cached,
			`{"resultType":"complete","ttlMs":1, "cacheScope":"public", "_meta":{"io.modelcontextprotocol/serverInfo":null}, "x":[1.0]}`},
		{json.RawMessage(`[]`), plain, "a result must be a JSON object"},
		{json.RawMessage(`{`), plain, "string expected at offset 1"},
		{struct{ A func() }{}, plain, "json: unsupported type: func()"},
		{"x", nil, "a result must be a JSON object"},
	}
	for _, tt := range tests {
		before := fmt.Sprintf("%+v", tt.v)
		out, err := encodeResult([]byte("x"), tt.v, rev20260728, tt.st)
		got := strings.TrimPrefix(string(out), "x")
		if err != nil {
			got = err.Error()
		} else if err := validJSON(out[1:]); err != nil {
			t.Error(err)
		}
		if got != tt.want {
			t.Errorf("%T %+v:\n got %s\nwant %s", tt.v, tt.v, got, tt.want)
		}
		if after := fmt.Sprintf("%+v", tt.v); after != before {
			t.Errorf("%s was changed to %s", before, after)
		}
	}
}

// TestLegacyResults shows that no older revision gets what came later.
func TestLegacyResults(t *testing.T) {
	st := &stamp{serverInfo: []byte("{}"), cacheable: true, ttlMs: 5, cacheScope: "public"}
	for _, rev := range revisions[:4] {
		for v, want := range map[any]string{
			nil:            `{}`,
			&EmptyResult{}: `{}`,
			&ListToolsResult{ResultType: "complete", CacheHints: CacheHints{5, "public"}}: `{"tools":[]}`,
			&struct{ A int }{1}: `{"A":1}`,
		} {
			if out, err := encodeResult(nil, v, rev, st); err != nil || string(out) != want {
				t.Errorf("%T at %s: %s, %v", v, rev.version, out, err)
			}
		}
	}
}

// Types for the comparison with encoding/json.

// An argBox puts T where arguments may have it.
type argBox[T any] struct {
	F T            `json:"1"`
	P *T           `json:"2"`
	S []T          `json:"3"`
	M map[string]T `json:"4"`
	A [2]T         `json:"5,omitempty"`
}

type (
	argTextual   struct{ text string } // has UnmarshalText
	argSelfmade  struct{ raw string }  // has UnmarshalJSON
	argBoth      string                // has both
	argBytesLike []byte
	argFlag      bool
	argStringer  interface{ String() string }
	argHidden    struct {
		H int `json:"h"`
		T int `json:"-"`
	}
	ArgShown struct {
		Sh int
		D  int
	}
	argTagged struct {
		D int
	}
	argNamed struct {
		X int `json:"D"`
	}
	argEmbeds struct {
		argHidden
		*ArgShown
		argTagged `json:"tagged"`
		Name      string `json:"n,omitempty"`
		argSkipped
	}
	argSkipped   struct{ s int }
	argEmbedsPtr struct {
		*argHidden
		X int `json:"x"`
	}
	argClash struct { // D of both is hidden, s is not
		ArgShown
		argTagged
	}
	argWins struct { // a name from a tag does
		ArgShown
		argNamed
	}
	argDeeper struct {
		argClash
		D string
	}
	argTwice struct { // by two ways at one depth
		argWayOne
		argWayTwo
	}
	argWayOne struct{ ArgShown }
	argWayTwo struct{ ArgShown }
	argQuotes struct {
		I int      `json:"i,string"`
		F float64  `json:"f,string"`
		B bool     `json:"b,string"`
		S string   `json:"s,string"`
		P *int     `json:"p,string"`
		L []string `json:"l,string"`
	}
	argList struct {
		V    int      `json:"v"`
		Next *argList `json:"next"`
	}
	argTimed struct {
		time.Time
		Note string
	}
	argOddNames struct {
		O1 int `json:"a b"`
		O2 int `json:"\"b\""` // no name that encoding/json takes
		O3 int `json:",omitempty"`
		O4 int `json:"日本"`
		O5 int `json:"-,"`
		O6 int
		o7 int
	}
)

func (x *argTextual) UnmarshalText(text []byte) error {
	if string(text) == "no" {
		return errors.New("no")
	}
	x.text = string(text)
	return nil
}

func (x *argSelfmade) UnmarshalJSON(raw []byte) error {
	if string(raw) == "false" {
		return errors.New("no")
	}
	x.raw = string(raw)
	return nil
}

func (x *argBoth) UnmarshalJSON(raw []byte) error  { *x = argBoth("json:" + string(raw)); return nil }
func (x *argBoth) UnmarshalText(text []byte) error { *x = argBoth("text:" + string(text)); return nil }

func boxed[T any]() func() any { return func() any { return new(argBox[T]) } }

// argumentTypes makes zero values of many Go types.
var argumentTypes = []func() any{
	boxed[bool](), boxed[int](), boxed[int8](), boxed[uint8](), boxed[int64](), boxed[uint64](), boxed[uintptr](),
	boxed[float32](), boxed[float64](), boxed[string](), boxed[json.Number](), boxed[argFlag](), boxed[argBytesLike](),
	boxed[[]byte](), boxed[[]int8](), boxed[[]uint16](), boxed[[2]byte](), boxed[[]string](), boxed[[3]string](), boxed[[][]int](),
	boxed[map[string]int](), boxed[map[int8]string](), boxed[map[uint]any](), boxed[map[bool]int](), boxed[map[argTextual]int](),
	boxed[map[argBoth]int](), boxed[map[json.Number]int](), boxed[map[string]*string](), boxed[map[string]json.RawMessage](),
	boxed[any](), boxed[[]any](), boxed[map[string]any](), boxed[argStringer](), boxed[error](),
	boxed[*int](), boxed[**string](), boxed[json.RawMessage](), boxed[*json.RawMessage](),
	boxed[argTextual](), boxed[*argTextual](), boxed[argSelfmade](), boxed[*argSelfmade](), boxed[argBoth](), boxed[[]argBoth](),
	boxed[time.Time](), boxed[*time.Time](), boxed[time.Duration](), boxed[big.Int](), boxed[*big.Int](), boxed[netip.Addr](),
	boxed[argTimed](), boxed[struct{ time.Time }](), boxed[*struct{ time.Time }](),
	boxed[argEmbeds](), boxed[argEmbedsPtr](), boxed[argClash](), boxed[argWins](), boxed[argDeeper](), boxed[argTwice](), boxed[argQuotes](), boxed[argList](), boxed[argOddNames](), boxed[struct{}](),
	boxed[chan int](), boxed[func()](), boxed[complex64](), boxed[Content](), boxed[ID](), boxed[Annotations](), boxed[Role](),
}

// argumentValues are tried as values of all of them.
var argumentValues = strings.Split(strings.TrimSpace(`
null
true
false
0
-0
1
-1
127
128
255
256
65536
1.0
1.5
1e2
1E-2
1e400
3.5e38
-3.5e38
9007199254740993
9223372036854775807
9223372036854775808
18446744073709551615
18446744073709551616
""
"x"
"1"
"-5"
"007"
"true"
"null"
"no"
"1.5"
"1e400"
"\"q\""
"AQI="
"AQI"
"A\nQI="
"2026-01-02T03:04:05Z"
"10.0.0.1"
"\u00e9\ud83d\ude00\/\b"
"\ud800x"
"\ud800\u0041"
[]
[1]
[1,2,3]
[1,-1,300]
["a"]
["a","b","c","d"]
[null]
[null,1]
[[1],[]]
[true,"x",{"y":null}]
{}
{"a":1}
{"1":"x"}
{"300":"x"}
{"1":"x","01":"y"}
{"-1":"x"}
{"":1,"no":2}
{"x":{"y":[1,{"z":null}]}}
{"x":null}
{"h":1,"Sh":2,"D":3,"n":"n","T":1,"t":1,"tagged":{"D":4}}
{"h":1}
{"x":5,"h":null}
{"Sh":1,"D":"x"}
{"Sh":1,"D":2}
{"tagged":null}
{"i":"1","f":"1.5","b":"true","s":"\"x\"","p":"5","l":["x"]}
{"i":null,"p":null,"s":null}
{"i":"null"}
{"i":1}
{"i":"x"}
{"i":""}
{"s":"x"}
{"s":"\"x"}
{"b":"yes"}
{"f":"1e400"}
{"p":"null"}
{"p":[]}
{"v":1,"next":{"v":2,"next":{"next":null}}}
{"v":1,"next":[]}
{"a b":1,"\"b\"":2,"O2":7,"O3":3,"日本":4,"-":5,"O6":6,"o7":1}
{"Time":"2026-01-02T03:04:05Z","Note":"x"}
{"type":"text","text":"x"}
{"audience":["user"],"priority":1,"lastModified":null}
`), "\n")

// TestArgumentsLikeEncodingJSON shows that decodeArguments takes what
// encoding/json takes, and makes the same of it.
func TestArgumentsLikeEncodingJSON(t *testing.T) {
	accepted := 0
	for _, zero := range argumentTypes {
		for _, value := range argumentValues {
			for _, form := range []string{`{"1":%s}`, `{"2":%s}`, `{"3":[%s]}`, `{"3":%s}`, `{"4":{"k":%s}}`, `{"5":[%[1]s,%[1]s,7]}`, `%s`} {
				doc := fmt.Sprintf(form, value)
				want, got := zero(), zero()
				wantErr, gotErr := unmarshalStd(doc, want), decodeArguments([]byte(doc), got)
				switch {
				case gotErr == nil && aboutIntegers(wantErr):
				case (wantErr == nil) != (gotErr == nil):
					t.Errorf("%T %s:\n got %v\nwant %v", want, doc, gotErr, wantErr)
				case wantErr == nil && !reflect.DeepEqual(got, want):
					t.Errorf("%T %s:\n got %+v\nwant %+v", want, doc, got, want)
				case wantErr == nil:
					accepted++
				}
			}
		}
	}
	if accepted < 5000 {
		t.Errorf("only %d documents were decoded", accepted)
	}
}

var unreadNumber = regexp.MustCompile(`cannot unmarshal (?:number )?"?(-?[\d.eE+-]+)`)

// aboutIntegers reports whether encoding/json stumbled over an integer with a
// fraction or an exponent, such as 1.0, which is one to JSON Schema and to us,
// or over -0 where it wants no sign.
func aboutIntegers(err error) bool {
	if err == nil {
		return false
	}
	m := unreadNumber.FindStringSubmatch(err.Error())
	return m != nil && (m[1] == "-0" || !isInteger([]byte(m[1])) && isIntegral([]byte(m[1])))
}

// unmarshalStd is json.Unmarshal, with a panic of it as an error.
func unmarshalStd(doc string, v any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return json.Unmarshal([]byte(doc), v)
}

func TestArgumentsUnlikeEncodingJSON(t *testing.T) {
	type inner struct {
		Name string `json:"name"`
	}
	type in struct {
		inner
		N    int64            `json:"n"`
		Any  any              `json:"any"`
		List []inner          `json:"list"`
		Map  map[string]inner `json:"map"`
		Raw  json.RawMessage  `json:"raw"`
		Text argTextual       `json:"text"`
		Self argSelfmade      `json:"self"`
	}
	tests := []struct{ doc, want string }{ // want is an error, or nothing for the zero value
		{`{"NAME":"x","Name":"x","N":1,"ANY":1,"naMe":5}`, ""},
		{"{\"\u212a\":1}", ""},
		{``, ""},
		{`null`, ""},
		{`{"name":"a","name":"b"}`, "arguments.name is given twice"},
		{`{"name":"a","n\u0061me":"b"}`, "arguments.name is given twice"},
		{`{"other":1,"other":2}`, ""},
		{`{"any":{"a":{"b":1,"b":1}}}`, `arguments.any["a"]["b"] is given twice`},
		{`{"any":[{"b":1,"b":1}]}`, `arguments.any[0]["b"] is given twice`},
		{`{"any":[{"b":1e999}]}`, `arguments.any[0]["b"] must be a number within the range of float64`},
		{`{"map":{"a":{},"a":{}}}`, `arguments.map["a"] is given twice`},
		{`{"map":{"a":{"name":5}}}`, `arguments.map["a"].name must be a string`},
		{`{"list":[{},{"name":[]}]}`, "arguments.list[1].name must be a string"},
		{`{"n":1.5}`, "arguments.n must be an integer within the range of int64"},
		{`{"n":"1"}`, "arguments.n must be a number"},
		{`{"n":9223372036854775808}`, "arguments.n must be an integer within the range of int64"},
		{`{"text":"no"}`, "arguments.text no"},
		{`{"text":5}`, "arguments.text must be a string"},
		{`{"self":false}`, "arguments.self no"},
		{`{"n":1`, "arguments: ',' or '}' expected at offset 6"},
		{`[]`, "arguments must be an object"},
		{"{\"name\":\"\xff\"}", "arguments: invalid UTF-8 at offset 9"},
	}
	for _, tt := range tests {
		var v in
		got := ""
		if err := decodeArguments([]byte(tt.doc), &v); err != nil {
			got = err.Error()
		} else if !reflect.DeepEqual(v, in{}) {
			t.Errorf("%s: %+v", tt.doc, v)
		}
		if got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.doc, got, tt.want)
		}
	}
	var v in
	doc := []byte(`{"n":9007199254740993,"raw":{"x": 1.10}}`)
	if err := decodeArguments(doc, &v); err != nil || v.N != 9007199254740993 || string(v.Raw) != `{"x": 1.10}` {
		t.Errorf("%+v, %v", v, err)
	}
	clear(doc)
	if string(v.Raw) != `{"x": 1.10}` {
		t.Errorf("raw arguments share memory with the frame: %s", v.Raw)
	}
}

// argDigits is a type whose names have no upper and lower case, so that
// encoding/json reads it as we do.
type argDigits struct {
	B bool                       `json:"1"`
	I int32                      `json:"2"`
	U uint64                     `json:"3"`
	F float32                    `json:"4"`
	S string                     `json:"5"`
	N json.Number                `json:"6"`
	L []argDigits                `json:"7"`
	M map[int]any                `json:"8"`
	P **argDigits                `json:"9"`
	R json.RawMessage            `json:"10"`
	A any                        `json:"11"`
	T time.Time                  `json:"12"`
	Y []byte                     `json:"13"`
	Q *float64                   `json:"14,string"`
	K map[string]json.RawMessage `json:"15"`
	X [2]*int                    `json:"16"`
}

// argMore has more kinds, embedded structs and names in other places.
type argMore struct {
	ArgOne
	*ArgTwo
	G  grade           `json:"1"`
	B  *big.Int        `json:"2"`
	I  int8            `json:"3,string"`
	S  string          `json:"4,string"`
	M  map[grade]int8  `json:"5"`
	D  time.Duration   `json:"6,omitempty"`
	N  netip.Addr      `json:"7"`
	O  [2]ring         `json:"8"`
	L  nestedList      `json:"9"`
	U  map[uint8][]any `json:"10"`
	Y  coin            `json:"11"`
	YY []coin          `json:"12"`
}

type ArgOne struct {
	A uint16 `json:"1"`
	B uint16 `json:"21"`
	C uint16 `json:"22"`
}

type ArgTwo struct {
	B string `json:"21"`
	C string `json:"23"`
}

// FuzzDecodeArguments reads what it is given into two types: what encoding/json
// takes is taken, and what fits the schema decodes.
func FuzzDecodeArguments(f *testing.F) {
	f.Add([]byte(`{"1":true,"2":-5,"3":18446744073709551615,"4":1.5e-3,"5":"\ud83d\ude00","6":1e999,"7":[{"1":false},null]}`))
	f.Add([]byte(`{"8":{"1":{"x":[null]}},"9":{"9":{}},"10": [ 1 ],"11":{"a":-0},"12":"2026-01-02T03:04:05Z","13":"AQI="}`))
	f.Add([]byte(`{"14":"1.5","15":{"a":1},"16":[1,null,3]}`))
	f.Add([]byte(`{"1":"g5","2":1e3,"3":"-7","4":"\"\\u00e9\"","5":{"g1":1,"g2":2.0},"6":1e9,"7":"::1","8":[{"Rest":null},{"Rest":[{"next":{}}]}],"9":[[],[[]]],"10":{"255":[{}]},"21":"x","22":65535.0,"23":"y"}`))
	digits, err := compileInferred(reflect.TypeFor[argDigits]())
	if err != nil {
		f.Fatal(err)
	}
	more, err := compileInferred(reflect.TypeFor[argMore]())
	if err != nil {
		f.Fatal(err)
	}
	for _, value := range argumentValues {
		for i := range 16 {
			f.Add(fmt.Appendf(nil, `{"%d":%s}`, i+1, value))
		}
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		d := decoder{scanner: scanner{data: doc}, args: true}
		if _, err := d.any(); errors.Is(err, errTwice) || !utf8.Valid(doc) || bytes.HasPrefix(doc, []byte("\uFEFF")) || len(bytes.TrimSpace(doc)) == 0 {
			return // where the two are meant to differ
		}
		new(agreement).check(t, reflect.TypeFor[argDigits](), digits, doc, true)
		new(agreement).check(t, reflect.TypeFor[argMore](), more, doc, true)
	})
}

// FuzzDecodeAt reads anything as any type: it must not crash, and what it
// reads and can write must not change by being read and written again.
func FuzzDecodeAt(f *testing.F) {
	for i, pt := range protocolTypes {
		for r, rev := range revisions {
			if _, ok := pt.at(rev); ok {
				out, err := encodeAt(nil, pt.filled(rev), rev)
				if err != nil {
					f.Fatal(err)
				}
				f.Add(out, uint8(i), uint8(r), false)
			}
		}
	}
	f.Fuzz(func(t *testing.T, doc []byte, which, revAt uint8, strict bool) {
		typ := reflect.TypeOf(protocolTypes[int(which)%len(protocolTypes)].value)
		rev := revisions[int(revAt)%len(revisions)]
		v := reflect.New(typ).Interface()
		if err := decodeAt(doc, v, rev, strict); err != nil {
			return
		}
		once, err := encodeAt(nil, v, rev)
		if err != nil {
			return
		}
		if err := validJSON(once); err != nil {
			t.Fatalf("%v in %s", err, once)
		}
		v = reflect.New(typ).Interface()
		if err := decodeAt(once, v, rev, false); err != nil {
			t.Fatalf("%v in %s", err, once)
		}
		if twice, err := encodeAt(nil, v, rev); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%s\nbecame %s, %v", once, twice, err)
		}
	})
}

// TestCodecAllocations keeps the codec to what the values themselves need.
func TestCodecAllocations(t *testing.T) {
	call := []byte(`{"name":"echo","arguments":{"text":"hello","n":5}}`)
	result := &CallToolResult{Content: []Content{Text("hello")}}
	st := &stamp{serverInfo: []byte(`{"name":"s","version":"1"}`)}
	buf := make([]byte, 0, 1024)
	var params CallToolParams
	for name, c := range map[string]struct {
		most float64
		f    func() error
	}{
		"decode params": {1, func() error { return decodeAt(call, &params, rev20251125, true) }},
		"encode result": {0, func() error { _, err := encodeResult(buf, result, rev20260728, st); return err }},
	} {
		if err := c.f(); err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { c.f() }); n > c.most {
			t.Errorf("%s: %v allocations, at most %v wanted", name, n, c.most)
		}
	}
}

// TestPlansConcurrently compiles plans that refer to each other from many
// goroutines, for the race detector to see.
func TestPlansConcurrently(t *testing.T) {
	type a struct {
		B []struct{ X *argList } `json:"b"`
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var v a
			if err := decodeArguments([]byte(`{"b":[{"X":{"v":1}}]}`), &v); err != nil || v.B[0].X.V != 1 {
				t.Errorf("%+v, %v", v, err)
			}
		}()
	}
	wg.Wait()
}

// A publishedSchema is the published schema of one revision, closed: where a
// type has members, it has no others.
type publishedSchema struct {
	defs    map[string]any
	keyword string // "$defs" or "definitions"
	dialect any
}

func readPublished(t *testing.T, rev *revision) publishedSchema {
	t.Helper()
	data, err := os.ReadFile(publishedSpec + "/schema/" + rev.version + "/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	s := publishedSchema{keyword: "$defs", dialect: doc["$schema"]}
	if _, ok := doc[s.keyword]; !ok {
		s.keyword = "definitions"
	}
	s.defs = doc[s.keyword].(map[string]any)
	for name, def := range s.defs {
		if !strings.HasSuffix(name, "MetaObject") && name != "NotificationParams" { // may hold anything
			closeSchema(def)
		}
	}
	return s
}

func closeSchema(node any) {
	switch node := node.(type) {
	case []any:
		for _, x := range node {
			closeSchema(x)
		}
	case map[string]any:
		properties, ok := node["properties"].(map[string]any)
		if _, open := node["additionalProperties"]; ok && !open {
			node["additionalProperties"] = false
			if properties["_meta"] == nil {
				properties["_meta"] = true
			}
		}
		for keyword, x := range node {
			if keyword != "allOf" { // its parts do not know each other's members
				closeSchema(x)
			}
		}
	}
}

// definition returns the place of a type in the schema, "" if it is not
// there, and the members it has there.
func (s publishedSchema) definition(names string) (ref string, members []string) {
	params, isParams := strings.CutPrefix(names, "params of ")
	for _, name := range strings.Fields(params) {
		at := strings.Split(name, "/")
		if isParams {
			if at = []string{name + "Params"}; s.defs[at[0]] == nil {
				at = []string{name, "properties", "params"}
			}
		}
		node := any(s.defs)
		for _, step := range at {
			object, _ := node.(map[string]any)
			node = object[step]
		}
		if node, ok := node.(map[string]any); ok {
			properties, _ := node["properties"].(map[string]any)
			return "#/" + s.keyword + "/" + strings.Join(at, "/"), slices.Sorted(maps.Keys(properties))
		}
	}
	return "", nil
}

// compile makes one schema of all definitions: an object whose members are
// named for definitions must hold values of them.
func (s publishedSchema) compile(t *testing.T) *Schema {
	t.Helper()
	properties := map[string]any{}
	for _, pt := range protocolTypes {
		if ref, _ := s.definition(pt.defs); ref != "" {
			properties[ref] = map[string]string{"$ref": ref}
		}
	}
	whole, err := json.Marshal(map[string]any{"$schema": s.dialect, "properties": properties, s.keyword: s.defs})
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := CompileSchema(whole, nil)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// TestPublishedSchemas shows that values with every member set are, at each
// revision, what its published schema defines, no more and no less.
func TestPublishedSchemas(t *testing.T) {
	shows(t, "tools.structured.object")
	if _, err := os.Stat(publishedSpec); err != nil {
		t.Skip("the published schemas are not here")
	}
	for _, rev := range revisions {
		schema := readPublished(t, rev)
		compiled := schema.compile(t)
		validate := func(ref string, doc []byte) error {
			return compiled.Validate(fmt.Appendf(nil, "{%q:%s}", ref, doc))
		}
		for _, pt := range protocolTypes {
			ref, defined := schema.definition(pt.defs)
			members, ok := pt.at(rev)
			if !ok || pt.defs == "" {
				continue
			}
			name := fmt.Sprintf("%T %s at %s", pt.value, pt.kind, rev.version)
			if ref == "" {
				t.Errorf("%s: no %s", name, pt.defs)
				continue
			}
			if missing := slices.DeleteFunc(defined, func(m string) bool {
				return m == "_meta" || slices.Contains(members, m)
			}); len(missing) > 0 {
				t.Errorf("%s: %s has %q too", name, ref, missing)
			}
			doc, err := encodeAt(nil, pt.filled(rev), rev)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if err := validate(ref, doc); err != nil {
				t.Errorf("%s: %v\nin %s", name, err, doc)
			}
		}
		ref, _ := schema.definition("Tool")
		if err := validate(ref, []byte(`{"name":"t","inputSchema":{"type":"object"},"other":1}`)); err == nil {
			t.Errorf("the schema of %s takes anything", rev.version)
		}
	}
}

// What users supply is checked: each row is a value and whether it is good.

type checked struct {
	value string
	good  bool
}

func checkTable(t *testing.T, rows []checked, check func(value string) error) {
	t.Helper()
	for _, row := range rows {
		if err := check(row.value); (err == nil) != row.good {
			t.Errorf("%.60q: %v; good is %v", row.value, err, row.good)
		}
	}
}

func TestMetaKeys(t *testing.T) {
	shows(t, "meta.key.label", "meta.key.name", "meta.key.prefix", "meta.key.reserved-any-label", "meta.key.reserved-second-label")
	checkTable(t, []checked{
		{"name", true}, {"progressToken", true}, {"", true}, {"a", true}, {"9", true}, {"a-b_c.d", true},
		{"-a", false}, {"a-", false}, {"_a", false}, {"a.", false}, {"a b", false}, {"a:b", false}, {"ä", false}, {"a\n", false},
		{"com.example/name", true}, {"com.example/", true}, {"example/1", true}, {"a-b9.c/x", true}, {"A.B/c", true},
		{"1a.example/x", false}, {"com.a-/x", false}, {"com.-a/x", false}, {"com.9/x", false}, {"com..example/x", false},
		{"com.a_b/x", false}, {"/x", false}, {".com/x", false}, {"com./x", false}, {"com.example/a/b", false}, {"com.example//", false},
		// since 2025-11-25
		{"io.modelcontextprotocol/x", false}, {"dev.mcp/x", false}, {"com.mcp.tools/x", false}, {"org.modelcontextprotocol.api/x", false},
		{"com.example.mcp/x", true}, {"mcp/x", true}, {"modelcontextprotocol/x", true}, {"com.mcpkit/x", true},
		// at 2025-06-18
		{"mcp.dev/x", false}, {"modelcontextprotocol.io/x", false}, {"api.modelcontextprotocol.org/x", false}, {"com.example.mcp.tools/x", false},
	}, func(key string) error { return checkMetaKeys(Meta{"com.example/first": nil, key: nil}) })
}

// TestOwnMetaKeys: what this package sets is well formed, and reserved, but for the
// names that the protocol has without a prefix.
func TestOwnMetaKeys(t *testing.T) {
	shows(t, "meta.key.prefix", "meta.key.label", "meta.key.name", "meta.key.reverse-dns")
	for _, key := range []string{metaProtocolVersion, metaClientCapabilities, metaClientInfo, metaLogLevel, metaServerInfo,
		metaSubscriptionID, metaRelatedTask, metaProgressToken, metaTraceparent, metaTracestate, metaBaggage} {
		prefix, err := splitMetaKey(key)
		if err != nil || prefix != nil && (!reservedPrefix(prefix) || prefix[0] != "io") {
			t.Errorf("%s: prefix %v, %v", key, prefix, err)
		}
	}
}

func TestExtensionIdentifiers(t *testing.T) {
	shows(t, "version.ext.identifier")
	checkTable(t, []checked{
		{"com.example/feature", true}, {"io.modelcontextprotocol/tasks", true}, {"example/f.1", true},
		{"feature", false}, {"", false}, {"com.example/", false}, {"/feature", false}, {"1com/feature", false}, {"com.example/a/b", false},
	}, func(id string) error { return checkExtensions(map[string]json.RawMessage{id: json.RawMessage(`{}`)}) })
	checkTable(t, []checked{
		{`{}`, true}, {`{"a":1}`, true}, {`null`, false}, {`[]`, false}, {`1`, false}, {`{`, false}, {``, false},
	}, func(settings string) error {
		return checkExtensions(map[string]json.RawMessage{"com.example/feature": json.RawMessage(settings)})
	})
}

func TestToolNames(t *testing.T) {
	shows(t, "tools.name.charset", "tools.name.length")
	for _, c := range []struct {
		name            string
		warned, refused bool
	}{
		{"add", false, false}, {"Get_User-2.0", false, false}, {".", false, false}, {strings.Repeat("a", 128), false, false},
		{strings.Repeat("a", 129), true, false}, {strings.Repeat("ä", 129), true, false},
		{"a b", true, false}, {"a,b", true, false}, {"ä", true, false}, {"a/b", true, false}, {"a\n", true, false}, {"a\u0161", true, false},
		{"", false, true}, {"a\xff", false, true},
	} {
		warning, err := checkToolName(c.name)
		if (warning != "") != c.warned || (err != nil) != c.refused {
			t.Errorf("%.20q: %q, %v", c.name, warning, err)
		}
	}
}

func TestPriorityOfAnnotations(t *testing.T) {
	shows(t, "resources.priority")
	for _, c := range []struct {
		priority float64
		good     bool
	}{{0, true}, {0.5, true}, {1, true}, {1.5, false}, {-0.1, false}, {math.NaN(), false}, {math.Inf(1), false}} {
		if err := checkAnnotations(&Annotations{Priority: &c.priority}); (err == nil) != c.good {
			t.Errorf("%v: %v", c.priority, err)
		}
	}
	if err := cmp.Or(checkAnnotations(nil), checkAnnotations(&Annotations{})); err != nil {
		t.Error(err)
	}
}

func TestIconSources(t *testing.T) {
	shows(t, "icons.scheme.reject")
	rows := []checked{
		{"https://example.com/a.png", true}, {"HTTPS://example.com/a.png", true}, {"data:image/png;base64,AA==", true}, {"Data:,x", true},
		{"http://example.com/a.png", false}, {"javascript:alert(1)", false}, {"file:///etc/passwd", false}, {"ftp://example.com/a", false},
		{"ws://example.com", false}, {"app://icon", false}, {"vscode:icon", false}, {"a.png", false}, {"/a.png", false}, {"//example.com/a.png", false},
		{"", false}, {"https:", false}, {"https://", false}, {"https:a.png", false}, {"https:///a.png", false},
		{" https://example.com", false}, {"https://example.com/a b", false}, {"java\nscript:alert(1)", false}, {"data:\n,x", false},
	}
	checkTable(t, rows, func(src string) error { return checkIcons([]Icon{{Src: "data:,"}, {Src: src}}) })
	var all, good []Icon
	for _, row := range rows {
		all = append(all, Icon{Src: row.value})
		if row.good {
			good = append(good, Icon{Src: row.value})
		}
	}
	before := slices.Clone(all)
	if got := usableIcons(all); !reflect.DeepEqual(got, good) || !reflect.DeepEqual(all, before) {
		t.Errorf("usable: %v", got)
	}
	if got := usableIcons(good); &got[0] != &good[0] || usableIcons(nil) != nil {
		t.Error("icons that are all usable are copied")
	}
}

func TestTraceContext(t *testing.T) {
	shows(t, "meta.trace.format")
	const ids = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"
	members := func(n int) string { return strings.TrimSuffix(strings.Repeat("k=v,", n), ",") }
	var states []string
	for i := range 33 {
		states = append(states, fmt.Sprintf("k%d=v", i))
	}
	for key, rows := range map[string][]checked{
		metaTraceparent: {
			{"00-" + ids + "-01", true}, {"cc-" + ids + "-00", true}, {"cc-" + ids + "-00-more", true},
			{"00-" + ids + "-01-more", false}, {"cc-" + ids + "-00more", false}, {"ff-" + ids + "-01", false},
			{"00-" + strings.ToUpper(ids) + "-01", false}, {"00-" + ids + "-0", false}, {"00-" + ids + "-0g", false}, {"", false},
			{"00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01", false}, {"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", false},
			{"00_" + ids + "-01", false}, {"00-1-2-01", false},
		},
		metaTracestate: {
			{"", true}, {"a=1", true}, {"rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", true}, {"a=1 , b=2\t,,", true}, {"t@v=1", true}, {"a=x y", true},
			{"a", false}, {"=1", false}, {"a=", false}, {"A=1", false}, {"a=1,a=2", false}, {"a=1=2", false}, {"a=ä", false}, {"a=\x01", false}, {"-a=1", false},
			{strings.Join(states[:32], ","), true}, {strings.Join(states, ","), false},
			{strings.Repeat("k", 256) + "=v", true}, {strings.Repeat("k", 257) + "=v", false},
			{"k=" + strings.Repeat("v", 256), true}, {"k=" + strings.Repeat("v", 257), false},
		},
		metaBaggage: {
			{"a=1", true}, {"a=", true}, {"user=Am%C3%A9lie, b = 2 ; p ; q=1", true}, {"K!=v=w", true},
			{"", false}, {"a", false}, {"=1", false}, {"a b=1", false}, {"a=1,", false}, {"a=x y", false}, {`a="1"`, false}, {"a=é", false}, {"a=1;", false}, {`a=\`, false},
			{members(180), true}, {members(181), false},
		},
		"other": {{"", true}, {"ä\n", true}},
	} {
		t.Run(key, func(t *testing.T) {
			checkTable(t, rows, func(value string) error {
				if !validTraceContext(key, appendString(nil, value)) {
					return errors.New("invalid")
				}
				return nil
			})
		})
	}
	for _, raw := range []string{`7`, `null`, `["a=1"]`, `"a=1`, ``} {
		if validTraceContext(metaBaggage, json.RawMessage(raw)) {
			t.Errorf("%s is a good baggage", raw)
		}
	}
	m := Meta{metaTraceparent: json.RawMessage(`"x"`), metaTracestate: json.RawMessage(`"a=1"`), "other": json.RawMessage(`1`)}
	if m.dropMalformedTrace(); len(m) != 2 || m[metaTraceparent] != nil {
		t.Errorf("left of malformed values: %v", m)
	}
}
