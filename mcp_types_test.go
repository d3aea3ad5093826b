package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

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
	{Annotations{}, "", "Annotations", since{rev20241105: "audience priority", rev20250618: "+lastModified"}},
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
