// Package mcp speaks the Model Context Protocol: it makes servers that offer
// tools, resources and prompts to language models, and clients that use them.
//
// A server registers what it offers and runs on a transport:
//
//	s := mcp.NewServer(mcp.Implementation{Name: "clock", Version: "1.0.0"}, nil)
//	mcp.AddTool(s, mcp.Tool{Name: "now", Description: "The time of day"},
//		func(ctx context.Context, req *mcp.Request, in struct{}) (string, error) {
//			return time.Now().Format(time.Kitchen), nil
//		})
//	err := s.Run(ctx, mcp.Stdio())
//
// A client connects and calls:
//
//	c := mcp.NewClient(mcp.Implementation{Name: "host", Version: "1.0.0"}, nil)
//	cs, err := c.Connect(ctx, &mcp.Command{Cmd: exec.Command("clock")})
//	res, err := cs.CallTool(ctx, "now", nil)
//
// The protocol has five revisions in two eras. The legacy era, 2024-11-05 to
// 2025-11-25, opens a session with initialize, and either side may send
// requests. The modern era, 2026-07-28, has no session: every request carries
// what the server must know, and a server asks the client by way of a result.
// One Server and one Client serve both at the same time, and handlers are
// written once. There is one set of Go types for all revisions: a member that
// a revision does not define is left out when a message of that revision is
// written, and ignored when one is read.
package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
)

// This file is the vocabulary: the revisions, the methods, every params and
// result type, and the codec that knows which member belongs to which
// revision.

// The revisions of the protocol.
const (
	Version20241105 = "2024-11-05"
	Version20250326 = "2025-03-26"
	Version20250618 = "2025-06-18"
	Version20251125 = "2025-11-25"
	Version20260728 = "2026-07-28"

	LatestVersion = Version20260728
)

// A revision is what differs between versions of the protocol, apart from the
// members of messages, which the types below know. Version strings are
// compared nowhere but here.
type revision struct {
	version string
	index   int  // position in revisions
	modern  bool // no session: state in every request's _meta, results with resultType
	batches bool // a frame may be an array of messages
}

var (
	rev20241105 = &revision{version: Version20241105}
	rev20250326 = &revision{version: Version20250326, index: 1, batches: true}
	rev20250618 = &revision{version: Version20250618, index: 2}
	rev20251125 = &revision{version: Version20251125, index: 3}
	rev20260728 = &revision{version: Version20260728, index: 4, modern: true}

	// revisions is in order, oldest first.
	revisions = []*revision{rev20241105, rev20250326, rev20250618, rev20251125, rev20260728}

	// revLatest is what values are encoded at when no peer is involved.
	revLatest = rev20260728
	// revLegacy is the newest revision that initialize can agree on.
	revLegacy = rev20251125
)

// revisionOf returns nil for a version that this package does not know, which
// says nothing about its being older or newer.
func revisionOf(version string) *revision {
	for _, r := range revisions {
		if r.version == version {
			return r
		}
	}
	return nil
}

// atLeast reports whether r is o or a later revision.
func (r *revision) atLeast(o *revision) bool { return r.index >= o.index }

// A span is a run of revisions; both ends belong to it, and nil is open.
type span struct{ from, to *revision }

func (s span) has(r *revision) bool {
	return (s.from == nil || r.atLeast(s.from)) && (s.to == nil || s.to.atLeast(r))
}

// The methods and notifications of all revisions.
const (
	methodInitialize    = "initialize"
	methodDiscover      = "server/discover"
	methodPing          = "ping"
	methodSetLevel      = "logging/setLevel"
	methodToolsList     = "tools/list"
	methodToolsCall     = "tools/call"
	methodPromptsList   = "prompts/list"
	methodPromptsGet    = "prompts/get"
	methodResourcesList = "resources/list"
	methodTemplatesList = "resources/templates/list"
	methodResourcesRead = "resources/read"
	methodSubscribe     = "resources/subscribe"
	methodUnsubscribe   = "resources/unsubscribe"
	methodComplete      = "completion/complete"
	methodListen        = "subscriptions/listen"
	methodTasksGet      = "tasks/get"
	methodTasksResult   = "tasks/result"
	methodTasksList     = "tasks/list"
	methodTasksCancel   = "tasks/cancel"
	methodCreateMessage = "sampling/createMessage"
	methodElicit        = "elicitation/create"
	methodRootsList     = "roots/list"

	notifyInitialized         = "notifications/initialized"
	notifyCancelled           = "notifications/cancelled"
	notifyProgress            = "notifications/progress"
	notifyMessage             = "notifications/message"
	notifyToolsChanged        = "notifications/tools/list_changed"
	notifyPromptsChanged      = "notifications/prompts/list_changed"
	notifyResourcesChanged    = "notifications/resources/list_changed"
	notifyResourceUpdated     = "notifications/resources/updated"
	notifyRootsChanged        = "notifications/roots/list_changed"
	notifyAcknowledged        = "notifications/subscriptions/acknowledged"
	notifyElicitationComplete = "notifications/elicitation/complete"
	notifyTaskStatus          = "notifications/tasks/status"
)

var (
	always       = &span{}
	legacyOnly   = &span{to: rev20251125}
	modernOnly   = &span{from: rev20260728}
	tasksCore    = &span{from: rev20251125, to: rev20251125}
	elicitLegacy = &span{from: rev20250618, to: rev20251125}
)

// methods says in which revisions each method or notification may be sent to
// a server and to a client; nil is never. What a 2026-07-28 server asks of a
// client is not sent as a request, so it is not here.
var methods = map[string]struct{ toServer, toClient *span }{
	methodInitialize:    {legacyOnly, nil},
	methodDiscover:      {modernOnly, nil},
	methodPing:          {legacyOnly, legacyOnly},
	methodSetLevel:      {legacyOnly, nil},
	methodToolsList:     {always, nil},
	methodToolsCall:     {always, nil},
	methodPromptsList:   {always, nil},
	methodPromptsGet:    {always, nil},
	methodResourcesList: {always, nil},
	methodTemplatesList: {always, nil},
	methodResourcesRead: {always, nil},
	methodSubscribe:     {legacyOnly, nil},
	methodUnsubscribe:   {legacyOnly, nil},
	methodComplete:      {always, nil},
	methodListen:        {modernOnly, nil},
	methodTasksGet:      {tasksCore, tasksCore},
	methodTasksResult:   {tasksCore, tasksCore},
	methodTasksList:     {tasksCore, tasksCore},
	methodTasksCancel:   {tasksCore, tasksCore},
	methodCreateMessage: {nil, legacyOnly},
	methodElicit:        {nil, elicitLegacy},
	methodRootsList:     {nil, legacyOnly},

	notifyInitialized:         {legacyOnly, nil},
	notifyCancelled:           {always, always},
	notifyProgress:            {legacyOnly, always},
	notifyMessage:             {nil, always},
	notifyToolsChanged:        {nil, always},
	notifyPromptsChanged:      {nil, always},
	notifyResourcesChanged:    {nil, always},
	notifyResourceUpdated:     {nil, always},
	notifyRootsChanged:        {legacyOnly, nil},
	notifyAcknowledged:        {nil, modernOnly},
	notifyElicitationComplete: {nil, tasksCore},
	notifyTaskStatus:          {tasksCore, tasksCore},
}

// methodDefined reports whether the revision has the method or notification
// in the given direction.
func methodDefined(method string, rev *revision, toServer bool) bool {
	in := methods[method].toClient
	if toServer {
		in = methods[method].toServer
	}
	return in != nil && in.has(rev)
}

// Keys of _meta that the protocol defines.
const (
	metaProgressToken      = "progressToken"                              // on requests
	metaProtocolVersion    = "io.modelcontextprotocol/protocolVersion"    // on requests, 2026-07-28
	metaClientCapabilities = "io.modelcontextprotocol/clientCapabilities" // on requests, 2026-07-28
	metaClientInfo         = "io.modelcontextprotocol/clientInfo"         // on requests, 2026-07-28
	metaLogLevel           = "io.modelcontextprotocol/logLevel"           // on requests, 2026-07-28
	metaServerInfo         = "io.modelcontextprotocol/serverInfo"         // on results, 2026-07-28
	metaSubscriptionID     = "io.modelcontextprotocol/subscriptionId"     // on what a listen request brings, 2026-07-28
	metaRelatedTask        = "io.modelcontextprotocol/related-task"       // on what belongs to a task, 2025-11-25
)

// How the types below say what is on the wire, in struct tags:
//
//   - json: the member's name. Without an option the member is required, and
//     always written: a nil slice as [], a nil map as {}, a nil pointer as
//     null. omitempty leaves out a zero value, omitzero only a nil one, so that
//     an empty slice is still written.
//   - mcp: the revisions that have the member, "2025-06-18" for that and all
//     later ones, "2025-11-25..2025-11-25" for that one, "..2025-11-25" for up
//     to that one. After a comma: "object" for a member that must be a JSON
//     object, "schema" for a JSON Schema that must have type object, either
//     with "..2025-11-25" if later revisions allow any value; "oneOrMore" for
//     content that is one block or an array of them.
//   - kind: the kinds of content that have the member; "!" where it is required.
//   - empty: what is written for a required member that is zero.

// Meta is the _meta member of params, results, and most other objects: data
// beside the protocol's own, under keys such as "example.com/trace". The
// values are kept as they came. nil is absent.
//
// Keys whose prefix has modelcontextprotocol or mcp as its second label
// belong to the protocol (2026-07-28 basic § _meta).
type Meta map[string]json.RawMessage

// Get decodes the value under key into v, a non-nil pointer, with member names
// matched exactly. It returns false when there is no such key.
func (m Meta) Get(key string, v any) (bool, error) {
	raw, ok := m[key]
	if !ok {
		return false, nil
	}
	return true, decodeAny(raw, v)
}

// Set stores v under key, encoded as JSON; m must not be nil. It panics if v
// cannot be encoded.
func (m Meta) Set(key string, v any) {
	raw, err := encodeAt(nil, v, revLatest)
	if err != nil {
		panic("mcp: Meta.Set: " + err.Error())
	}
	m[key] = raw
}

// An Implementation names a client or a server and its build.
type Implementation struct {
	Name        string `json:"name"`                                   // for programs
	Title       string `json:"title,omitempty" mcp:"2025-06-18"`       // for people; Name stands in
	Version     string `json:"version"`                                // any text
	Description string `json:"description,omitempty" mcp:"2025-11-25"` // what it does, in a sentence or two
	WebsiteURL  string `json:"websiteUrl,omitempty" mcp:"2025-11-25"`  // where to read more
	Icons       []Icon `json:"icons,omitzero" mcp:"2025-11-25"`
}

// An Icon is an image for display beside a name, since 2025-11-25. Whoever
// renders one must treat the image and its address as untrusted.
type Icon struct {
	Src      string   `json:"src"`                // an https or data URI
	MIMEType string   `json:"mimeType,omitempty"` // overrides what the source says
	Sizes    []string `json:"sizes,omitzero"`     // such as "48x48", or "any"
	Theme    string   `json:"theme,omitempty"`    // background it is made for: "light" or "dark"; "" is either
}

// A Role is who a message is from or for: "user" or "assistant".
type Role string

// Annotations say how a client may use content or a resource.
type Annotations struct {
	Audience     []Role   `json:"audience,omitzero"`                       // who it is for; nil says nothing
	Priority     *float64 `json:"priority,omitzero"`                       // from 0, optional, to 1, required
	LastModified string   `json:"lastModified,omitempty" mcp:"2025-06-18"` // ISO 8601
}

// Capabilities. In all of them the presence of a member declares a feature,
// so {} and absent differ: new(struct{}) declares one that has no settings.

// ClientCapabilities are what a client can be asked for.
type ClientCapabilities struct {
	// Experimental features by name; each value is a JSON object.
	Experimental map[string]json.RawMessage `json:"experimental,omitzero"`
	// Roots says that the client lists roots. Deprecated at 2026-07-28 in
	// favour of tool arguments, resource URIs or configuration; it still works.
	// Roots.ListChanged is not written at 2026-07-28.
	Roots *RootsCapability `json:"roots,omitzero"`
	// Sampling says that the client runs its model for the server. Deprecated
	// at 2026-07-28 in favour of calling a model provider; it still works.
	Sampling *SamplingCapability `json:"sampling,omitzero"`
	// Elicitation says that the client asks its user questions.
	Elicitation *ElicitationCapability `json:"elicitation,omitzero" mcp:"2025-06-18"`
	// Tasks says which requests to the client may run as tasks.
	Tasks *TasksCapability `json:"tasks,omitzero" mcp:"2025-11-25..2025-11-25"`
	// Extensions by identifier; each value is a JSON object of settings.
	Extensions map[string]json.RawMessage `json:"extensions,omitzero" mcp:"2026-07-28"`
}

// RootsCapability belongs to [ClientCapabilities].
type RootsCapability struct {
	ListChanged bool `json:"listChanged,omitempty" mcp:"..2025-11-25"` // the client notifies of changes
	kept
}

// SamplingCapability belongs to [ClientCapabilities].
type SamplingCapability struct {
	Context *struct{} `json:"context,omitzero" mcp:"2025-11-25"` // IncludeContext may be other than "none"
	Tools   *struct{} `json:"tools,omitzero" mcp:"2025-11-25"`   // Tools and ToolChoice may be given
}

// ElicitationCapability belongs to [ClientCapabilities]. Without members it
// declares the form mode.
type ElicitationCapability struct {
	Form *struct{} `json:"form,omitzero" mcp:"2025-11-25"`
	URL  *struct{} `json:"url,omitzero" mcp:"2025-11-25"`
}

// ServerCapabilities are what a server offers.
type ServerCapabilities struct {
	// Experimental features by name; each value is a JSON object.
	Experimental map[string]json.RawMessage `json:"experimental,omitzero"`
	// Logging says that the server sends log messages. Deprecated at
	// 2026-07-28 in favour of stderr and OpenTelemetry; it still works.
	Logging     *struct{}            `json:"logging,omitzero"`
	Completions *struct{}            `json:"completions,omitzero" mcp:"2025-03-26"`
	Prompts     *ListCapability      `json:"prompts,omitzero"`
	Resources   *ResourcesCapability `json:"resources,omitzero"`
	Tools       *ListCapability      `json:"tools,omitzero"`
	// Tasks says which requests to the server may run as tasks.
	Tasks *TasksCapability `json:"tasks,omitzero" mcp:"2025-11-25..2025-11-25"`
	// Extensions by identifier; each value is a JSON object of settings.
	Extensions map[string]json.RawMessage `json:"extensions,omitzero" mcp:"2026-07-28"`
}

// ListCapability says that a server has tools or prompts.
type ListCapability struct {
	ListChanged bool `json:"listChanged,omitempty"` // the server notifies of changes to the list
	kept
}

// ResourcesCapability says that a server has resources.
type ResourcesCapability struct {
	Subscribe   bool `json:"subscribe,omitempty"`   // the server notifies of changes to one resource
	ListChanged bool `json:"listChanged,omitempty"` // the server notifies of changes to the list
	kept
}

// TasksCapability belongs to 2025-11-25 and is the same on both sides.
type TasksCapability struct {
	List   *struct{} `json:"list,omitzero"`   // tasks/list is served
	Cancel *struct{} `json:"cancel,omitzero"` // tasks/cancel is served
	// Requests names what may run as a task, by the two halves of the method:
	// {"tools": {"call": {}}}.
	Requests map[string]map[string]struct{} `json:"requests,omitzero"`
}

// EmptyParams are the params of requests and notifications that have none of
// their own: ping, server/discover, roots/list, and those that say that a
// list has changed.
type EmptyParams struct {
	Meta Meta `json:"_meta,omitzero"`
}

// An EmptyResult has nothing but the members of every result.
type EmptyResult struct {
	ResultType string `json:"resultType,omitempty" mcp:"2026-07-28"`
	Meta       Meta   `json:"_meta,omitzero"`
}

// InitializeParams open a session, before 2026-07-28.
type InitializeParams struct {
	ProtocolVersion string             `json:"protocolVersion"` // the newest that the client speaks
	Capabilities    ClientCapabilities `json:"capabilities"`
	ClientInfo      Implementation     `json:"clientInfo"`
	Meta            Meta               `json:"_meta,omitzero"`
}

// InitializeResult is the answer to initialize, before 2026-07-28.
type InitializeResult struct {
	ProtocolVersion string             `json:"protocolVersion"` // what the session will speak
	Capabilities    ServerCapabilities `json:"capabilities"`
	ServerInfo      Implementation     `json:"serverInfo"`
	Instructions    string             `json:"instructions,omitempty"` // how to use the server, for the model
	Meta            Meta               `json:"_meta,omitzero"`
}

// DiscoverResult is the answer to server/discover, at 2026-07-28. The server's
// name is in Meta.
type DiscoverResult struct {
	ResultType        string             `json:"resultType,omitempty"`
	SupportedVersions []string           `json:"supportedVersions"`
	Capabilities      ServerCapabilities `json:"capabilities"`
	Instructions      string             `json:"instructions,omitempty"` // how to use the server, for the model
	CacheHints
	Meta Meta `json:"_meta,omitzero"`
}

// CacheHints say for how long a client may use a result again, at 2026-07-28.
// The zero value leaves that to the server's own setting; to say "not at all"
// set CacheScope and leave TTLMs at 0.
type CacheHints struct {
	TTLMs      int64  `json:"ttlMs,omitempty" mcp:"2026-07-28"`      // milliseconds from receipt; a negative value counts as 0
	CacheScope string `json:"cacheScope,omitempty" mcp:"2026-07-28"` // "private", the default, or "public": for every user
}

// ListParams are the params of every list method with pages.
type ListParams struct {
	Cursor *string `json:"cursor,omitzero"` // NextCursor of the page before; nil asks for the first page, "" is a cursor
	Meta   Meta    `json:"_meta,omitzero"`
}

// A Tool is a function that a model may call.
type Tool struct {
	Name        string `json:"name"`                             // unique in the server
	Title       string `json:"title,omitempty" mcp:"2025-06-18"` // for people; Name stands in
	Description string `json:"description,omitempty"`            // what it does, for the model
	// InputSchema is the JSON Schema of the arguments; its type is object.
	// nil allows any arguments.
	InputSchema json.RawMessage `json:"inputSchema" mcp:",object" empty:"{\"type\":\"object\"}"`
	// OutputSchema is the JSON Schema of StructuredContent; nil says nothing
	// about it. One whose type is not object is written at 2026-07-28 only.
	OutputSchema json.RawMessage  `json:"outputSchema,omitzero" mcp:"2025-06-18,schema..2025-11-25"`
	Annotations  *ToolAnnotations `json:"annotations,omitzero" mcp:"2025-03-26"`
	Execution    *ToolExecution   `json:"execution,omitzero" mcp:"2025-11-25..2025-11-25"`
	Icons        []Icon           `json:"icons,omitzero" mcp:"2025-11-25"`
	Meta         Meta             `json:"_meta,omitzero" mcp:"2025-06-18"`
}

// ToolAnnotations are hints on what a tool does, since 2025-03-26. A client
// must not trust those of a server that it does not trust. nil is unsaid.
type ToolAnnotations struct {
	Title           string `json:"title,omitempty"`          // for people; [Tool] has a better place for it
	ReadOnlyHint    *bool  `json:"readOnlyHint,omitzero"`    // changes nothing; false when unsaid
	DestructiveHint *bool  `json:"destructiveHint,omitzero"` // may destroy, not only add; true when unsaid
	IdempotentHint  *bool  `json:"idempotentHint,omitzero"`  // calling twice is calling once; false when unsaid
	OpenWorldHint   *bool  `json:"openWorldHint,omitzero"`   // reaches beyond the server; true when unsaid
}

// ToolExecution belongs to 2025-11-25.
type ToolExecution struct {
	TaskSupport string `json:"taskSupport,omitempty"` // "forbidden", the default, "optional" or "required"
}

// ListToolsResult is one page of tools.
type ListToolsResult struct {
	ResultType string  `json:"resultType,omitempty" mcp:"2026-07-28"`
	Tools      []Tool  `json:"tools"`
	NextCursor *string `json:"nextCursor,omitzero"` // nil on the last page; "" is a cursor
	CacheHints
	Meta Meta `json:"_meta,omitzero"`
}

// CallToolParams call a tool.
type CallToolParams struct {
	Name           string          `json:"name"`
	Arguments      json.RawMessage `json:"arguments,omitzero" mcp:",object"` // a JSON object; nil is no arguments
	Task           *TaskMetadata   `json:"task,omitzero" mcp:"2025-11-25..2025-11-25"`
	InputResponses InputResponses  `json:"inputResponses,omitzero" mcp:"2026-07-28"`
	RequestState   *string         `json:"requestState,omitzero" mcp:"2026-07-28"` // as in [InputRequiredResult]
	Meta           Meta            `json:"_meta,omitzero"`
}

// CallToolResult is what a tool call came to.
type CallToolResult struct {
	ResultType string    `json:"resultType,omitempty" mcp:"2026-07-28"`
	Content    []Content `json:"content"` // what the model reads
	// StructuredContent is for programs. Before 2026-07-28 it is a JSON object,
	// and any other value is not written. nil is absent, null is a value.
	StructuredContent json.RawMessage `json:"structuredContent,omitzero" mcp:"2025-06-18,object..2025-11-25"`
	IsError           bool            `json:"isError,omitempty"` // the tool failed; Content says how
	Meta              Meta            `json:"_meta,omitzero"`
	kept
}

// Content is one block of content. Type says which of the other fields count;
// the rest are neither written nor read.
//
//   - "text": Text
//   - "image", and since 2025-03-26 "audio": Data, MIMEType
//   - "resource", an embedded resource: Resource
//   - "resource_link", since 2025-06-18: URI, Name, Title, Description,
//     MIMEType, Size, Icons
//   - "tool_use", since 2025-11-25, in sampling only: ID, Name, Input
//   - "tool_result", since 2025-11-25, in sampling only: ToolUseID, Content,
//     StructuredContent, IsError
//
// Any other Type is a block of a kind that this package does not know, and
// Raw is the whole of it. A block that the peer's revision does not know is
// sent to it as text that stands in for it.
type Content struct {
	Type string `json:"type"`

	Text     string            `json:"text" kind:"text!"`
	Data     []byte            `json:"data" kind:"image! audio!"` // base64 on the wire
	MIMEType string            `json:"mimeType,omitempty" kind:"image! audio! resource_link"`
	Resource *ResourceContents `json:"resource" kind:"resource!" empty:"{\"uri\":\"\",\"text\":\"\"}"`

	URI         string `json:"uri" kind:"resource_link!"`
	Name        string `json:"name" kind:"resource_link! tool_use!"`
	Title       string `json:"title,omitempty" kind:"resource_link"`
	Description string `json:"description,omitempty" kind:"resource_link"`
	Size        *int64 `json:"size,omitzero" kind:"resource_link"` // bytes, before any encoding
	Icons       []Icon `json:"icons,omitzero" mcp:"2025-11-25" kind:"resource_link"`

	ID    string          `json:"id" kind:"tool_use!"` // the call's, for ToolUseID of its result
	Input json.RawMessage `json:"input" mcp:",object" kind:"tool_use!" empty:"{}"`

	ToolUseID         string          `json:"toolUseId" kind:"tool_result!"`
	Content           []Content       `json:"content" kind:"tool_result!"`
	StructuredContent json.RawMessage `json:"structuredContent,omitzero" mcp:",object..2025-11-25" kind:"tool_result"`
	IsError           bool            `json:"isError,omitempty" kind:"tool_result"`

	Annotations *Annotations `json:"annotations,omitzero" kind:"text image audio resource resource_link"`
	Meta        Meta         `json:"_meta,omitzero" mcp:"2025-06-18"`

	Raw json.RawMessage `json:"-"` // a block of unknown kind, a JSON object
	kept
}

// Text returns a block of text.
func Text(text string) Content { return Content{Type: "text", Text: text} }

// Image returns a block with an image, given as the bytes of a file.
func Image(data []byte, mimeType string) Content {
	return Content{Type: "image", Data: data, MIMEType: mimeType}
}

// Audio returns a block with a sound, given as the bytes of a file.
func Audio(data []byte, mimeType string) Content {
	return Content{Type: "audio", Data: data, MIMEType: mimeType}
}

// EmbeddedResource returns a block that holds a resource.
func EmbeddedResource(r ResourceContents) Content {
	return Content{Type: "resource", Resource: &r}
}

// ResourceLink returns a block that names a resource, to be read when wanted.
func ResourceLink(r Resource) Content {
	return Content{Type: "resource_link", URI: r.URI, Name: r.Name, Title: r.Title, Description: r.Description,
		MIMEType: r.MIMEType, Size: r.Size, Icons: r.Icons, Annotations: r.Annotations, Meta: r.Meta}
}

// A Resource is a document that a server offers under one URI.
type Resource struct {
	URI         string       `json:"uri"`
	Name        string       `json:"name"`                             // for programs
	Title       string       `json:"title,omitempty" mcp:"2025-06-18"` // for people; Name stands in
	Description string       `json:"description,omitempty"`            // for the model
	MIMEType    string       `json:"mimeType,omitempty"`
	Size        *int64       `json:"size,omitzero"` // bytes, before any encoding; nil is unknown
	Annotations *Annotations `json:"annotations,omitzero"`
	Icons       []Icon       `json:"icons,omitzero" mcp:"2025-11-25"`
	Meta        Meta         `json:"_meta,omitzero" mcp:"2025-06-18"`
}

// A ResourceTemplate is a family of resources: every URI that fits an RFC 6570
// template.
type ResourceTemplate struct {
	URITemplate string       `json:"uriTemplate"`
	Name        string       `json:"name"`                             // for programs
	Title       string       `json:"title,omitempty" mcp:"2025-06-18"` // for people; Name stands in
	Description string       `json:"description,omitempty"`            // for the model
	MIMEType    string       `json:"mimeType,omitempty"`               // if all of them have the same
	Annotations *Annotations `json:"annotations,omitzero"`
	Icons       []Icon       `json:"icons,omitzero" mcp:"2025-11-25"`
	Meta        Meta         `json:"_meta,omitzero" mcp:"2025-06-18"`
}

// ListResourcesResult is one page of resources.
type ListResourcesResult struct {
	ResultType string     `json:"resultType,omitempty" mcp:"2026-07-28"`
	Resources  []Resource `json:"resources"`
	NextCursor *string    `json:"nextCursor,omitzero"` // nil on the last page; "" is a cursor
	CacheHints
	Meta Meta `json:"_meta,omitzero"`
}

// ListResourceTemplatesResult is one page of resource templates.
type ListResourceTemplatesResult struct {
	ResultType        string             `json:"resultType,omitempty" mcp:"2026-07-28"`
	ResourceTemplates []ResourceTemplate `json:"resourceTemplates"`
	NextCursor        *string            `json:"nextCursor,omitzero"` // nil on the last page; "" is a cursor
	CacheHints
	Meta Meta `json:"_meta,omitzero"`
}

// ReadResourceParams read a resource.
type ReadResourceParams struct {
	URI            string         `json:"uri"`
	InputResponses InputResponses `json:"inputResponses,omitzero" mcp:"2026-07-28"`
	RequestState   *string        `json:"requestState,omitzero" mcp:"2026-07-28"` // as in [InputRequiredResult]
	Meta           Meta           `json:"_meta,omitzero"`
}

// ReadResourceResult is what a resource holds: itself, or for something like a
// folder its parts.
type ReadResourceResult struct {
	ResultType string             `json:"resultType,omitempty" mcp:"2026-07-28"`
	Contents   []ResourceContents `json:"contents"`
	CacheHints
	Meta Meta `json:"_meta,omitzero"`
}

// ResourceContents is a resource, or a part of one, with what it holds: Blob if
// that is not nil, else Text.
type ResourceContents struct {
	URI      string `json:"uri"`
	MIMEType string `json:"mimeType,omitempty"`
	Text     string `json:"text,omitempty" kind:"text!"`
	Blob     []byte `json:"blob,omitzero" kind:"blob!"` // base64 on the wire; an empty one is []byte{}
	Meta     Meta   `json:"_meta,omitzero" mcp:"2025-06-18"`
}

// SubscribeParams are the params of resources/subscribe and
// resources/unsubscribe, before 2026-07-28.
type SubscribeParams struct {
	URI  string `json:"uri"`
	Meta Meta   `json:"_meta,omitzero"`
}

// ResourceUpdatedParams say which resource has changed.
type ResourceUpdatedParams struct {
	URI  string `json:"uri"` // may be a part of the one subscribed to
	Meta Meta   `json:"_meta,omitzero"`
}

// A Prompt is a message template that a user may choose.
type Prompt struct {
	Name        string           `json:"name"`                             // unique in the server
	Title       string           `json:"title,omitempty" mcp:"2025-06-18"` // for people; Name stands in
	Description string           `json:"description,omitempty"`
	Arguments   []PromptArgument `json:"arguments,omitzero"`
	Icons       []Icon           `json:"icons,omitzero" mcp:"2025-11-25"`
	Meta        Meta             `json:"_meta,omitzero" mcp:"2025-06-18"`
}

// A PromptArgument is a string that a prompt is filled in with.
type PromptArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty" mcp:"2025-06-18"` // for people; Name stands in
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
	kept
}

// ListPromptsResult is one page of prompts.
type ListPromptsResult struct {
	ResultType string   `json:"resultType,omitempty" mcp:"2026-07-28"`
	Prompts    []Prompt `json:"prompts"`
	NextCursor *string  `json:"nextCursor,omitzero"` // nil on the last page; "" is a cursor
	CacheHints
	Meta Meta `json:"_meta,omitzero"`
}

// GetPromptParams fill in a prompt.
type GetPromptParams struct {
	Name           string            `json:"name"`
	Arguments      map[string]string `json:"arguments,omitzero"`
	InputResponses InputResponses    `json:"inputResponses,omitzero" mcp:"2026-07-28"`
	RequestState   *string           `json:"requestState,omitzero" mcp:"2026-07-28"` // as in [InputRequiredResult]
	Meta           Meta              `json:"_meta,omitzero"`
}

// GetPromptResult is a prompt filled in.
type GetPromptResult struct {
	ResultType  string          `json:"resultType,omitempty" mcp:"2026-07-28"`
	Description string          `json:"description,omitempty"`
	Messages    []PromptMessage `json:"messages"`
	Meta        Meta            `json:"_meta,omitzero"`
}

// A PromptMessage is one turn of a prompt.
type PromptMessage struct {
	Role    Role    `json:"role"`
	Content Content `json:"content"`
}

// CompleteParams ask how an argument that the user is typing may go on.
type CompleteParams struct {
	Ref      CompleteReference `json:"ref"`
	Argument CompleteArgument  `json:"argument"`
	Context  *CompleteContext  `json:"context,omitzero" mcp:"2025-06-18"`
	Meta     Meta              `json:"_meta,omitzero"`
}

// A CompleteReference is what an argument belongs to. Type is "ref/prompt",
// with Name and Title, or "ref/resource", with URI.
type CompleteReference struct {
	Type  string `json:"type"`
	Name  string `json:"name" kind:"ref/prompt!"`
	Title string `json:"title,omitempty" mcp:"2025-06-18" kind:"ref/prompt"`
	URI   string `json:"uri" kind:"ref/resource!"` // a URI template
}

// A CompleteArgument is an argument and what has been typed of it.
type CompleteArgument struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// CompleteContext holds the arguments that have been filled in before, since
// 2025-06-18.
type CompleteContext struct {
	Arguments map[string]string `json:"arguments,omitzero"`
}

// CompleteResult is the answer to completion/complete.
type CompleteResult struct {
	ResultType string     `json:"resultType,omitempty" mcp:"2026-07-28"`
	Completion Completion `json:"completion"`
	Meta       Meta       `json:"_meta,omitzero"`
}

// Completion holds proposals for an argument, best first.
type Completion struct {
	Values  []string `json:"values"`            // at most 100
	Total   *int64   `json:"total,omitzero"`    // how many there are, sent or not; nil is unknown
	HasMore bool     `json:"hasMore,omitempty"` // there are more than Values
	kept
}

// CancelledParams withdraw a request.
type CancelledParams struct {
	RequestID ID     `json:"requestId,omitzero"` // zero at 2025-11-25 only, for a task
	Reason    string `json:"reason,omitempty"`   // for the log
	Meta      Meta   `json:"_meta,omitzero"`
}

// ProgressParams say how far a request has come.
type ProgressParams struct {
	ProgressToken ID       `json:"progressToken"`                      // what the request's _meta gave
	Progress      float64  `json:"progress"`                           // grows with every notice
	Total         *float64 `json:"total,omitzero"`                     // nil is unknown
	Message       string   `json:"message,omitempty" mcp:"2025-03-26"` // for people
	Meta          Meta     `json:"_meta,omitzero"`
}

// A LoggingLevel is the weight of a log message: "debug", "info", "notice",
// "warning", "error", "critical", "alert" or "emergency", as in RFC 5424.
// Logging is deprecated at 2026-07-28 in favour of stderr and OpenTelemetry;
// it still works.
type LoggingLevel string

var loggingLevels = []LoggingLevel{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// severity returns 0 for debug up to 7 for emergency, and -1 for a level that
// the protocol does not have.
func (l LoggingLevel) severity() int { return slices.Index(loggingLevels, l) }

// SetLevelParams say which log messages a session wants, before 2026-07-28.
type SetLevelParams struct {
	Level LoggingLevel `json:"level"` // this and everything heavier
	Meta  Meta         `json:"_meta,omitzero"`
}

// LogParams are one log message.
type LogParams struct {
	Level  LoggingLevel    `json:"level"`
	Logger string          `json:"logger,omitempty"` // which part of the server
	Data   json.RawMessage `json:"data"`             // any JSON value; nil is null
	Meta   Meta            `json:"_meta,omitzero"`
}

// ElicitParams ask the client's user, since 2025-06-18.
type ElicitParams struct {
	// Mode is "form", for answers by way of the client, or "url", for a page
	// that the client does not see, since 2025-11-25. "" is url when URL is
	// set, else form.
	Mode    string `json:"mode,omitempty" mcp:"2025-11-25" kind:"form url!" empty:"\"url\""`
	Message string `json:"message"` // for the user
	// RequestedSchema describes the form: a JSON Schema of type object whose
	// properties are strings, numbers, booleans, or choices.
	RequestedSchema json.RawMessage `json:"requestedSchema,omitzero" mcp:",object" kind:"form!" empty:"{\"type\":\"object\",\"properties\":{}}"`
	URL             string          `json:"url,omitempty" mcp:"2025-11-25" kind:"url!"`
	// ElicitationID names a url elicitation in the notice of its completion.
	ElicitationID string        `json:"elicitationId,omitempty" mcp:"2025-11-25..2025-11-25" kind:"url!"`
	Task          *TaskMetadata `json:"task,omitzero" mcp:"2025-11-25..2025-11-25"`
	Meta          Meta          `json:"_meta,omitzero" mcp:"..2025-11-25"`
}

// ElicitResult is what the user made of a question.
type ElicitResult struct {
	Action string `json:"action"` // "accept", "decline", or "cancel" when the user gave no answer
	// Content is a JSON object that fits RequestedSchema, when a form was
	// accepted.
	Content json.RawMessage `json:"content,omitzero" mcp:",object"`
	Meta    Meta            `json:"_meta,omitzero" mcp:"..2025-11-25"`
}

// ElicitationCompleteParams say that the user has done what a url elicitation
// asked for; 2025-11-25 only.
type ElicitationCompleteParams struct {
	ElicitationID string `json:"elicitationId"`
	Meta          Meta   `json:"_meta,omitzero"`
}

// CreateMessageParams ask the client to run its model. Sampling is deprecated
// at 2026-07-28 in favour of calling a model provider; it still works.
type CreateMessageParams struct {
	Messages         []SamplingMessage `json:"messages"`
	ModelPreferences *ModelPreferences `json:"modelPreferences,omitzero"`
	SystemPrompt     string            `json:"systemPrompt,omitempty"`
	// IncludeContext is "none", the default, "thisServer" or "allServers"; the
	// latter two are discouraged since 2025-11-25.
	IncludeContext string          `json:"includeContext,omitempty"`
	Temperature    *float64        `json:"temperature,omitzero"`
	MaxTokens      int64           `json:"maxTokens"`
	StopSequences  []string        `json:"stopSequences,omitzero"`
	Metadata       json.RawMessage `json:"metadata,omitzero" mcp:",object"` // a JSON object for the model provider
	Tools          []Tool          `json:"tools,omitzero" mcp:"2025-11-25"`
	ToolChoice     *ToolChoice     `json:"toolChoice,omitzero" mcp:"2025-11-25"`
	Task           *TaskMetadata   `json:"task,omitzero" mcp:"2025-11-25..2025-11-25"`
	Meta           Meta            `json:"_meta,omitzero" mcp:"..2025-11-25"`
}

// A SamplingMessage is one turn of the conversation given to the model.
// Content must have exactly one block before 2025-11-25.
type SamplingMessage struct {
	Role    Role      `json:"role"`
	Content []Content `json:"content" mcp:",oneOrMore"`
	Meta    Meta      `json:"_meta,omitzero" mcp:"2025-11-25"`
	kept
}

// ModelPreferences are wishes that the client may overrule.
type ModelPreferences struct {
	Hints                []ModelHint `json:"hints,omitzero"`        // best first
	CostPriority         *float64    `json:"costPriority,omitzero"` // from 0 to 1, as the other two
	SpeedPriority        *float64    `json:"speedPriority,omitzero"`
	IntelligencePriority *float64    `json:"intelligencePriority,omitzero"`
}

// A ModelHint names a model or a family of them.
type ModelHint struct {
	Name string `json:"name,omitempty"` // a part of the name will do
}

// ToolChoice says whether the model must call a tool, since 2025-11-25.
type ToolChoice struct {
	Mode string `json:"mode,omitempty"` // "auto", the default, "required" or "none"
}

// CreateMessageResult is what the model said. Content must have exactly one
// block before 2025-11-25.
type CreateMessageResult struct {
	Role       Role      `json:"role"`
	Content    []Content `json:"content" mcp:",oneOrMore"`
	Model      string    `json:"model"`
	StopReason string    `json:"stopReason,omitempty"` // "endTurn", "stopSequence", "maxTokens", "toolUse", or another
	Meta       Meta      `json:"_meta,omitzero"`
	kept
}

// A Root is a folder or file that the client works on. Roots are deprecated at
// 2026-07-28 in favour of tool arguments, resource URIs or configuration;
// they still work.
type Root struct {
	URI  string `json:"uri"` // begins with file://
	Name string `json:"name,omitempty"`
	Meta Meta   `json:"_meta,omitzero" mcp:"2025-06-18"`
}

// ListRootsResult is the answer to roots/list.
type ListRootsResult struct {
	Roots []Root `json:"roots"`
	Meta  Meta   `json:"_meta,omitzero" mcp:"..2025-11-25"`
}

// An InputRequiredResult asks the client to answer and then to send its
// request again, at 2026-07-28.
type InputRequiredResult struct {
	ResultType    string        `json:"resultType" empty:"\"input_required\""`
	InputRequests InputRequests `json:"inputRequests,omitzero"`
	RequestState  *string       `json:"requestState,omitzero"` // sent back unchanged; nil must stay absent
	Meta          Meta          `json:"_meta,omitzero"`
}

// InputRequests are questions under keys that the server chose.
type InputRequests map[string]InputRequest

// An InputRequest is a question: Method is elicitation/create,
// sampling/createMessage or roots/list, and Params are those of the method.
type InputRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitzero" mcp:",object"`
}

// InputResponses are the answers to [InputRequests] under the same keys, each
// the result of the question's method.
type InputResponses map[string]json.RawMessage

// SubscriptionFilter says what a client wants to hear of, at 2026-07-28.
type SubscriptionFilter struct {
	ToolsListChanged      bool     `json:"toolsListChanged,omitempty"`
	PromptsListChanged    bool     `json:"promptsListChanged,omitempty"`
	ResourcesListChanged  bool     `json:"resourcesListChanged,omitempty"`
	ResourceSubscriptions []string `json:"resourceSubscriptions,omitzero"` // URIs
	kept
}

// ListenParams are the params of subscriptions/listen, and of the notification
// that says what of it the server will do, at 2026-07-28.
type ListenParams struct {
	Notifications SubscriptionFilter `json:"notifications"`
	Meta          Meta               `json:"_meta,omitzero"`
}

// TaskMetadata asks for a request to run as a task, at 2025-11-25.
type TaskMetadata struct {
	TTL *int64 `json:"ttl,omitzero"` // milliseconds to keep the result; nil leaves it to the receiver
}

// A TaskStatus is "working", "input_required", "completed", "failed" or
// "cancelled". The last three are final.
type TaskStatus string

// A Task is the state of a request that runs on its own, at 2025-11-25.
type Task struct {
	TaskID        string     `json:"taskId"`
	Status        TaskStatus `json:"status"`
	StatusMessage string     `json:"statusMessage,omitempty"` // for people
	CreatedAt     string     `json:"createdAt"`               // ISO 8601
	LastUpdatedAt string     `json:"lastUpdatedAt"`           // ISO 8601
	TTL           *int64     `json:"ttl"`                     // milliseconds from CreatedAt; nil is without end
	PollInterval  *int64     `json:"pollInterval,omitzero"`   // milliseconds between tasks/get
}

// CreateTaskResult answers a request that runs as a task, at 2025-11-25.
type CreateTaskResult struct {
	Task Task `json:"task"`
	Meta Meta `json:"_meta,omitzero"`
}

// TaskParams are the params of tasks/get, tasks/result and tasks/cancel, at
// 2025-11-25.
type TaskParams struct {
	TaskID string `json:"taskId"`
	Meta   Meta   `json:"_meta,omitzero"`
}

// TaskResult is the result of tasks/get and tasks/cancel, and the params of
// notifications/tasks/status, at 2025-11-25.
type TaskResult struct {
	Task
	Meta Meta `json:"_meta,omitzero"`
}

// ListTasksResult is one page of tasks, at 2025-11-25.
type ListTasksResult struct {
	Tasks      []Task  `json:"tasks"`
	NextCursor *string `json:"nextCursor,omitzero"` // nil on the last page; "" is a cursor
	Meta       Meta    `json:"_meta,omitzero"`
}

// MissingCapabilityData is the data of an [Error] with code
// [CodeMissingClientCapability].
type MissingCapabilityData struct {
	RequiredCapabilities ClientCapabilities `json:"requiredCapabilities"`
}

// UnsupportedVersionData is the data of an [Error] with code
// [CodeUnsupportedProtocolVersion].
type UnsupportedVersionData struct {
	Supported []string `json:"supported"`
	Requested string   `json:"requested"`
}

// URLElicitationRequiredData is the data of an [Error] with code
// [CodeURLElicitationRequired]: what the user must do before the request can
// succeed.
type URLElicitationRequiredData struct {
	Elicitations []ElicitParams `json:"elicitations"`
}

// kept is what the exported fields of a decoded value cannot say.
type kept struct {
	falses uint8 // optional booleans that were given as false, by position
	list   bool  // content came as an array
}

// A stamp is what every result of a server carries at 2026-07-28.
type stamp struct {
	serverInfo []byte // encoded Implementation; nil leaves it out
	cacheable  bool   // the method's result has cache hints
	ttlMs      int64
	cacheScope string
}

// encodeAt appends v as rev writes it.
func encodeAt(dst []byte, v any, rev *revision) ([]byte, error) { return encodeJSON(dst, v) }

// encodeResult is encodeAt for the result of a method: v must encode to a JSON
// object, and nil is {}. At 2026-07-28 the result gets what st has and v does
// not; a nil st adds nothing.
func encodeResult(dst []byte, v any, rev *revision, st *stamp) ([]byte, error) {
	start := len(dst)
	if v == nil {
		dst = append(dst, "{}"...)
	} else {
		var err error
		if dst, err = encodeAt(dst, v, rev); err != nil {
			return dst[:start], err
		}
	}
	if dst[start] != '{' {
		return dst[:start], errors.New("a result must be a JSON object")
	}
	if st == nil || !rev.modern {
		return dst, nil
	}
	return stampObject(dst, start, st)
}

// stampObject adds what st has to the object at dst[start:], but for what it
// has itself.
func stampObject(dst []byte, start int, st *stamp) ([]byte, error) {
	s := scanner{data: dst[start:]}
	has := map[string][]byte{}
	metaAt, ttlAt := 0, 0
	s.open('{')
	n := 0
	for ; s.more('}', n); n++ {
		name := string(s.key())
		s.peek()
		at := start + s.pos
		switch has[name] = s.skip(); name {
		case "_meta":
			metaAt = at
		case "ttlMs":
			ttlAt = at
		}
	}
	if s.err != nil {
		return dst, s.err
	}
	var edits []edit
	if ttl := has["ttlMs"]; len(ttl) > 0 && ttl[0] == '-' {
		edits = append(edits, edit{ttlAt, len(ttl), []byte("0")})
	}
	if meta := has["_meta"]; meta != nil && st.serverInfo != nil {
		e, err := stampMeta(meta, metaAt, st)
		if err != nil {
			return dst, err
		}
		edits = append(edits, e)
	}
	head := stampHead(has, st)
	if n == 0 {
		head = bytes.TrimSuffix(head, []byte(","))
	}
	edits = append(edits, edit{at: start + 1, text: head})
	slices.SortFunc(edits, func(a, b edit) int { return b.at - a.at })
	for _, e := range edits {
		dst = slices.Replace(dst, e.at, e.at+e.cut, e.text...)
	}
	return dst, nil
}

// An edit replaces cut bytes at a position.
type edit struct {
	at, cut int
	text    []byte
}

// stampHead returns the members that an object with the members has lacks,
// each with a comma after it.
func stampHead(has map[string][]byte, st *stamp) []byte {
	var head []byte
	if has["resultType"] == nil {
		head = append(head, `"resultType":"complete",`...)
	}
	if st.cacheable && has["ttlMs"] == nil {
		head = append(strconv.AppendInt(append(head, `"ttlMs":`...), max(st.ttlMs, 0), 10), ',')
	}
	if st.cacheable && has["cacheScope"] == nil {
		head = append(appendString(append(head, `"cacheScope":`...), cmp.Or(st.cacheScope, "private")), ',')
	}
	if st.serverInfo != nil && has["_meta"] == nil {
		head = append(head, `"_meta":{"`+metaServerInfo+`":`...)
		head = append(append(head, st.serverInfo...), "},"...)
	}
	return head
}

// stampMeta returns the edit that puts the server's name into the _meta that
// is at the given position.
func stampMeta(meta []byte, at int, st *stamp) (edit, error) {
	info := append([]byte(`"`+metaServerInfo+`":`), st.serverInfo...)
	if string(meta) == "null" {
		return edit{at, len(meta), slices.Concat([]byte("{"), info, []byte("}"))}, nil
	}
	if meta[0] != '{' {
		return edit{}, errors.New("_meta of a result must be a JSON object")
	}
	s := scanner{data: meta}
	s.open('{')
	n := 0
	for ; s.more('}', n); n++ {
		if string(s.key()) == metaServerInfo {
			return edit{at: at}, nil
		}
		s.skip()
	}
	if n > 0 {
		info = append(info, ',')
	}
	return edit{at: at + 1, text: info}, nil
}

// decodeAt reads data into v, a pointer to one of the types above.
func decodeAt(data []byte, v any, rev *revision, strict bool) error {
	if len(data) == 0 {
		data = []byte("{}")
	}
	return json.Unmarshal(data, v)
}

func decodeAny(data []byte, v any) error { return json.Unmarshal(data, v) }

// decodeArguments reads the arguments of a tool call into v.
func decodeArguments(data []byte, v any) error { return json.Unmarshal(data, v) }
