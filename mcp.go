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
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
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

func init() {
	for name := range methods {
		commonStrings[name] = name
	}
	for _, rev := range revisions {
		commonStrings[rev.version] = rev.version
	}
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
	return true, decodeAny(raw, v, key)
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

// Annotations say how a client may use content or a resource. They are hints:
// a client must not trust those of a server that it does not trust.
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
	// Roots says that the client lists roots. Roots.ListChanged is not written
	// at 2026-07-28.
	//
	// Deprecated: roots are deprecated at 2026-07-28, where they still work. Take
	// folders and files as arguments of tools, as URIs of resources, or from the
	// server's configuration.
	Roots *RootsCapability `json:"roots,omitzero"`
	// Sampling says that the client runs its model for the server.
	//
	// Deprecated: sampling is deprecated at 2026-07-28, where it still works. Call
	// a model provider's API from the server.
	Sampling *SamplingCapability `json:"sampling,omitzero"`
	// Elicitation says that the client asks its user questions.
	Elicitation *ElicitationCapability `json:"elicitation,omitzero" mcp:"2025-06-18"`
	// Tasks says which requests to the client may run as tasks.
	Tasks *TasksCapability `json:"tasks,omitzero" mcp:"2025-11-25..2025-11-25"`
	// Extensions by identifier; each value is a JSON object of settings.
	Extensions map[string]json.RawMessage `json:"extensions,omitzero" mcp:"2026-07-28"`
}

// RootsCapability belongs to [ClientCapabilities].
//
// Deprecated: roots are deprecated at 2026-07-28, where they still work. Take
// folders and files as arguments of tools, as URIs of resources, or from the
// server's configuration.
type RootsCapability struct {
	ListChanged bool `json:"listChanged,omitempty" mcp:"..2025-11-25"` // the client notifies of changes
	kept
}

// SamplingCapability belongs to [ClientCapabilities].
//
// Deprecated: sampling is deprecated at 2026-07-28, where it still works. Call
// a model provider's API from the server.
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
	// Logging says that the server sends log messages.
	//
	// Deprecated: logging to clients is deprecated at 2026-07-28, where it still
	// works. Write to stderr, or use OpenTelemetry.
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
// must take them for untrusted, and decide nothing by them, unless it trusts
// the server. nil is unsaid.
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
// Raw is the whole of it; a Raw that is not nil is written as it is. A block
// that the peer's revision does not know is sent to it as text that stands in
// for it.
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
//
// Deprecated: logging to clients is deprecated at 2026-07-28, where it still
// works. Write to stderr, or use OpenTelemetry.
type LoggingLevel string

var loggingLevels = []LoggingLevel{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// severity returns 0 for debug up to 7 for emergency, and -1 for a level that
// the protocol does not have.
func (l LoggingLevel) severity() int { return slices.Index(loggingLevels, l) }

// SetLevelParams say which log messages a session wants, before 2026-07-28.
//
// Deprecated: logging to clients is deprecated at 2026-07-28, where it still
// works. Write to stderr, or use OpenTelemetry.
type SetLevelParams struct {
	Level LoggingLevel `json:"level"` // this and everything heavier
	Meta  Meta         `json:"_meta,omitzero"`
}

// LogParams are one log message.
//
// Deprecated: logging to clients is deprecated at 2026-07-28, where it still
// works. Write to stderr, or use OpenTelemetry.
type LogParams struct {
	Level  LoggingLevel    `json:"level"`
	Logger string          `json:"logger,omitempty"` // which part of the server
	Data   json.RawMessage `json:"data"`             // any JSON value; nil is null
	Meta   Meta            `json:"_meta,omitzero"`
}

// ElicitParams ask the client's user, since 2025-06-18.
type ElicitParams struct {
	// Mode is "form", for answers by way of the client, or "url", for a page
	// that the client does not see, since 2025-11-25. "" is form, unless URL is
	// set; what a peer sends without a mode is read as form, without a URL.
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

// CreateMessageParams ask the client to run its model.
//
// Deprecated: sampling is deprecated at 2026-07-28, where it still works. Call
// a model provider's API from the server.
type CreateMessageParams struct {
	Messages         []SamplingMessage `json:"messages"`
	ModelPreferences *ModelPreferences `json:"modelPreferences,omitzero"`
	SystemPrompt     string            `json:"systemPrompt,omitempty"`
	// IncludeContext is "none", the default, "thisServer" or "allServers". The
	// latter two are discouraged since 2025-11-25 and deprecated at 2026-07-28,
	// and not for clients that do not declare the context of
	// [SamplingCapability]: leave it empty, and put what matters into Messages.
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
//
// Deprecated: sampling is deprecated at 2026-07-28, where it still works. Call
// a model provider's API from the server.
type SamplingMessage struct {
	Role    Role      `json:"role"`
	Content []Content `json:"content" mcp:",oneOrMore"`
	Meta    Meta      `json:"_meta,omitzero" mcp:"2025-11-25"`
	kept
}

// ModelPreferences are wishes that the client may overrule.
//
// Deprecated: sampling is deprecated at 2026-07-28, where it still works. Call
// a model provider's API from the server.
type ModelPreferences struct {
	Hints                []ModelHint `json:"hints,omitzero"`        // best first
	CostPriority         *float64    `json:"costPriority,omitzero"` // from 0 to 1, as the other two
	SpeedPriority        *float64    `json:"speedPriority,omitzero"`
	IntelligencePriority *float64    `json:"intelligencePriority,omitzero"`
}

// A ModelHint names a model or a family of them.
//
// Deprecated: sampling is deprecated at 2026-07-28, where it still works. Call
// a model provider's API from the server.
type ModelHint struct {
	Name string `json:"name,omitempty"` // a part of the name will do
}

// ToolChoice says whether the model must call a tool, since 2025-11-25.
//
// Deprecated: sampling is deprecated at 2026-07-28, where it still works. Call
// a model provider's API from the server.
type ToolChoice struct {
	Mode string `json:"mode,omitempty"` // "auto", the default, "required" or "none"
}

// CreateMessageResult is what the model said. Content must have exactly one
// block before 2025-11-25.
//
// Deprecated: sampling is deprecated at 2026-07-28, where it still works. Call
// a model provider's API from the server.
type CreateMessageResult struct {
	Role       Role      `json:"role"`
	Content    []Content `json:"content" mcp:",oneOrMore"`
	Model      string    `json:"model"`
	StopReason string    `json:"stopReason,omitempty"` // "endTurn", "stopSequence", "maxTokens", "toolUse", or another
	Meta       Meta      `json:"_meta,omitzero"`
	kept
}

// A Root is a folder or file that the client works on.
//
// Deprecated: roots are deprecated at 2026-07-28, where they still work. Take
// folders and files as arguments of tools, as URIs of resources, or from the
// server's configuration.
type Root struct {
	URI  string `json:"uri"` // begins with file://
	Name string `json:"name,omitempty"`
	Meta Meta   `json:"_meta,omitzero" mcp:"2025-06-18"`
}

// ListRootsResult is the answer to roots/list.
//
// Deprecated: roots are deprecated at 2026-07-28, where they still work. Take
// folders and files as arguments of tools, as URIs of resources, or from the
// server's configuration.
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

// InputRequests are questions under keys that the server chose. They have no
// order, and a client may ask its user all of them at the same time.
type InputRequests map[string]InputRequest

// An InputRequest is a question: Method is elicitation/create,
// sampling/createMessage or roots/list, and Params are those of the method:
// the JSON of an [ElicitParams] or a [CreateMessageParams], or nil.
type InputRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitzero" mcp:",object"`
}

// InputResponses are the answers to [InputRequests] under the same keys, each
// the result of the question's method: the JSON of an [ElicitResult], a
// [CreateMessageResult] or a [ListRootsResult].
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

// What users supply is checked by the functions below when they supply it;
// what a peer sends is not refused for it.

// checkMetaKeys returns an error for a key that the protocol does not allow,
// or that belongs to it: what users put into a Meta is theirs
// (2026-07-28 basic § _meta).
func checkMetaKeys(m Meta) error {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		prefix, err := splitMetaKey(key)
		if err != nil {
			return fmt.Errorf("mcp: _meta key %q: %w", key, err)
		}
		if reservedPrefix(prefix) {
			return fmt.Errorf("mcp: _meta key %q: the prefix belongs to the protocol", key)
		}
	}
	return nil
}

// splitMetaKey returns the labels of the key's prefix, and an error for a key
// that is not well formed. The name after the prefix may be empty.
func splitMetaKey(key string) (prefix []string, err error) {
	name := key
	if before, after, ok := strings.Cut(key, "/"); ok {
		prefix, name = strings.Split(before, "."), after
	}
	for _, label := range prefix {
		if !isWord(label, "-") || !isLetter(label[0]) {
			return nil, fmt.Errorf("label %q of the prefix must start with a letter, end with a letter or digit, and have nothing but these and hyphens between", label)
		}
	}
	if name != "" && !isWord(name, "-_.") {
		return nil, fmt.Errorf("name %q must start and end with a letter or digit, and have nothing but these, hyphens, underscores and dots between", name)
	}
	return prefix, nil
}

// reservedPrefix reports whether third parties must leave a prefix to the
// protocol in any of its revisions: since 2025-11-25 those with
// modelcontextprotocol or mcp as second label, at 2025-06-18 those with one
// of the two anywhere but at the end.
func reservedPrefix(labels []string) bool {
	for i, label := range labels {
		if (label == "modelcontextprotocol" || label == "mcp") && (i == 1 || i < len(labels)-1) {
			return true
		}
	}
	return false
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isAlnum(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' }

// isWord reports whether s starts and ends with an ASCII letter or digit and
// has nothing but these and the bytes of inner between.
func isWord(s, inner string) bool {
	if s == "" || !isAlnum(s[0]) || !isAlnum(s[len(s)-1]) {
		return false
	}
	for _, c := range []byte(s) {
		if !isAlnum(c) && strings.IndexByte(inner, c) < 0 {
			return false
		}
	}
	return true
}

// checkExtensions returns an error for an extension whose identifier is no
// _meta key with a prefix, or whose settings are no JSON object. Extensions
// that the protocol itself has published may be declared, too
// (2026-07-28 basic/versioning § Extension Negotiation).
func checkExtensions(extensions map[string]json.RawMessage) error {
	for _, id := range slices.Sorted(maps.Keys(extensions)) {
		prefix, err := splitMetaKey(id)
		switch {
		case err != nil:
			return fmt.Errorf("mcp: extension %q: %w", id, err)
		case prefix == nil || strings.HasSuffix(id, "/"):
			return fmt.Errorf("mcp: extension %q: an identifier has a prefix and a name, as in com.example/name", id)
		case validJSON(extensions[id]) != nil || !hasShape(extensions[id], "object"):
			return fmt.Errorf("mcp: extension %q: the settings must be a JSON object", id)
		}
	}
	return nil
}

// checkToolName returns an error for a name that cannot be a tool's, and a
// warning for one that the protocol discourages
// (2026-07-28 server/tools § Tool Names).
func checkToolName(name string) (warning string, err error) {
	odd := func(r rune) bool { return r >= utf8.RuneSelf || !isAlnum(byte(r)) && !strings.ContainsRune("_-.", r) }
	switch {
	case name == "":
		return "", errors.New("mcp: a tool must have a name")
	case !utf8.ValidString(name):
		return "", fmt.Errorf("mcp: tool name %q is not UTF-8", name)
	case utf8.RuneCountInString(name) > 128:
		return "a tool name should have at most 128 characters", nil
	case strings.ContainsFunc(name, odd):
		return "a tool name should have nothing but ASCII letters, digits, underscores, hyphens and dots", nil
	}
	return "", nil
}

// checkAnnotations returns an error for a priority outside 0 to 1.
func checkAnnotations(a *Annotations) error {
	if a != nil && a.Priority != nil && !(*a.Priority >= 0 && *a.Priority <= 1) { // nor NaN
		return fmt.Errorf("mcp: annotations: priority %v is not between 0 and 1", *a.Priority)
	}
	return nil
}

// checkIcons returns an error for an icon that no client may use.
func checkIcons(icons []Icon) error {
	for _, icon := range icons {
		if !icon.usable() {
			return fmt.Errorf("mcp: icon %.80q is neither an https: nor a data: URI", icon.Src)
		}
	}
	return nil
}

// usableIcons returns icons without those that no client may use. It does not
// change icons.
func usableIcons(icons []Icon) []Icon {
	if !slices.ContainsFunc(icons, func(i Icon) bool { return !i.usable() }) {
		return icons
	}
	return slices.DeleteFunc(slices.Clone(icons), func(i Icon) bool { return !i.usable() })
}

// usable reports whether the icon's source is of one of the two schemes that
// are allowed: any other could run code or reach what is not public
// (2026-07-28 basic § Icons).
func (i *Icon) usable() bool {
	scheme, rest, ok := strings.Cut(i.Src, ":")
	if strings.EqualFold(scheme, "https") {
		ok = len(rest) > 2 && rest[:2] == "//" && rest[2] != '/'
	} else if !strings.EqualFold(scheme, "data") {
		return false
	}
	return ok && !strings.ContainsFunc(i.Src, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// Keys of _meta for tracing, which have no prefix
// (2026-07-28 basic § _meta).
const (
	metaTraceparent = "traceparent"
	metaTracestate  = "tracestate"
	metaBaggage     = "baggage"
)

// dropMalformedTrace takes from a Meta what must not be passed on.
func (m Meta) dropMalformedTrace() {
	for _, key := range []string{metaTraceparent, metaTracestate, metaBaggage} {
		if raw, ok := m[key]; ok && !validTraceContext(key, raw) {
			delete(m, key)
		}
	}
}

// validTraceContext reports whether a value of _meta has the form that its
// key demands: traceparent and tracestate that of W3C Trace Context, baggage
// that of W3C Baggage. Other keys demand nothing.
func validTraceContext(key string, value json.RawMessage) bool {
	var valid func(string) bool
	switch key {
	case metaTraceparent:
		valid = validTraceparent
	case metaTracestate:
		valid = validTracestate
	case metaBaggage:
		valid = validBaggage
	default:
		return true
	}
	if validJSON(value) != nil {
		return false
	}
	text, ok := stringValue(bytes.TrimSpace(value))
	return ok && valid(text)
}

// validTraceparent: version, trace, parent and flags in lower-case hex. Of
// version 00 that is all; a later one may go on after a hyphen.
func validTraceparent(s string) bool {
	if len(s) < 55 || len(s) > 55 && (s[:2] == "00" || s[55] != '-') {
		return false
	}
	for i := range 55 {
		if c := s[i]; i == 2 || i == 35 || i == 52 {
			if c != '-' {
				return false
			}
		} else if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return s[:2] != "ff" && strings.Trim(s[3:35], "0") != "" && strings.Trim(s[36:52], "0") != ""
}

// validTracestate: at most 32 members key=value, no key twice.
func validTracestate(s string) bool {
	seen := map[string]bool{}
	for member := range strings.SplitSeq(s, ",") {
		if member = strings.Trim(member, " \t"); member == "" {
			continue
		}
		key, value, ok := strings.Cut(member, "=")
		if !ok || seen[key] || !validTraceKey(key) || value == "" || len(value) > 256 {
			return false
		}
		for _, c := range []byte(value) {
			if c < ' ' || c > '~' || c == ',' || c == '=' {
				return false
			}
		}
		if seen[key] = true; len(seen) > 32 {
			return false
		}
	}
	return true
}

func validTraceKey(key string) bool {
	for i, c := range []byte(key) {
		alnum := 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
		if !alnum && (i == 0 || strings.IndexByte("_-*/@", c) < 0) {
			return false
		}
	}
	return key != "" && len(key) <= 256
}

// validBaggage: at most 180 members key=value, each with properties after
// semicolons that may be without a value.
func validBaggage(s string) bool {
	n := 0
	for member := range strings.SplitSeq(s, ",") {
		first := true
		for part := range strings.SplitSeq(member, ";") {
			key, value, ok := strings.Cut(part, "=")
			if !ok && first || !isToken(strings.Trim(key, " \t")) || !isBaggageValue(strings.Trim(value, " \t")) {
				return false
			}
			first = false
		}
		if n++; n > 180 {
			return false
		}
	}
	return true
}

// A headerParam is an argument of a tool that a client repeats in an HTTP
// header, so that who routes requests need not read bodies
// (2026-07-28 basic/transports/streamable-http § Custom Headers).
type headerParam struct {
	header string   // after "Mcp-Param-"
	path   []string // names of properties, from the arguments on
	typ    string   // "string", "integer" or "boolean"
}

// headerParams returns the parameters that an input schema marks with
// x-mcp-header, or why its marks are against the rules.
func headerParams(schema json.RawMessage) ([]headerParam, error) {
	if !bytes.Contains(schema, []byte(headerKeyword)) {
		return nil, nil
	}
	w := headerWalk{seen: make(map[string]bool)}
	if err := w.schema(schema, nil, true); err != nil {
		return nil, err
	}
	return w.found, nil
}

const headerKeyword = "x-mcp-header"

type headerWalk struct {
	found []headerParam
	seen  map[string]bool // headers, in lower case
}

// schema walks over a schema. static: it is reached through properties only.
func (w *headerWalk) schema(raw json.RawMessage, path []string, static bool) error {
	if !hasShape(raw, "object") {
		return nil
	}
	if mark := rawMember(raw, headerKeyword); mark != nil {
		if err := w.mark(raw, mark, path, static); err != nil {
			return fmt.Errorf("%s at %s: %w", headerKeyword, strings.Join(append([]string{"the root"}, path...), "."), err)
		}
	}
	return eachMember(raw, func(key string, value json.RawMessage) error {
		switch key {
		case "enum", "const", "default", "examples", headerKeyword: // values, not schemas
			return nil
		case "properties":
			return eachMember(value, func(name string, property json.RawMessage) error {
				return w.schema(property, append(slices.Clone(path), name), static)
			})
		case "$defs", "definitions", "patternProperties", "dependentSchemas":
			return eachMember(value, func(name string, sub json.RawMessage) error {
				return w.schema(sub, append(slices.Clone(path), key, name), false)
			})
		}
		return w.elsewhere(value, append(slices.Clone(path), key))
	})
}

// elsewhere walks over the value of another keyword, which may hold schemas.
func (w *headerWalk) elsewhere(raw json.RawMessage, path []string) error {
	s := scanner{data: raw}
	if s.peek() != '[' {
		return w.schema(raw, path, false)
	}
	s.open('[')
	for n := 0; s.more(']', n); n++ {
		if err := w.schema(s.skip(), path, false); err != nil {
			return err
		}
	}
	return s.err
}

// mark takes one mark.
func (w *headerWalk) mark(schema, mark json.RawMessage, path []string, static bool) error {
	name, ok := stringValue(mark)
	typ, _ := stringValue(rawMember(schema, "type"))
	switch {
	case !ok || !isToken(name):
		return errors.New("must be a name that an HTTP header can have")
	case !static || len(path) == 0:
		return errors.New("only a property that is reached through properties can have it")
	case typ != "string" && typ != "integer" && typ != "boolean":
		return errors.New("only a string, an integer or a boolean can have it")
	case w.seen[strings.ToLower(name)]:
		return fmt.Errorf("%q is used twice", name)
	}
	w.seen[strings.ToLower(name)] = true
	w.found = append(w.found, headerParam{name, path, typ})
	return nil
}

// eachMember calls f for every member of an object, and for none of anything
// else.
func eachMember(raw json.RawMessage, f func(key string, value json.RawMessage) error) error {
	s := scanner{data: raw}
	if s.peek() != '{' {
		return nil
	}
	s.open('{')
	for n := 0; s.more('}', n); n++ {
		key := string(s.key())
		if err := f(key, s.skip()); err != nil {
			return err
		}
	}
	return s.err
}

// value returns the argument, nil if it is absent or null: then there is no
// header.
func (p *headerParam) value(arguments []byte) []byte {
	for _, name := range p.path {
		if !hasShape(arguments, "object") {
			return nil
		}
		arguments = rawMember(arguments, name)
	}
	if string(arguments) == "null" {
		return nil
	}
	return arguments
}

// text returns what the header says of an argument. An integer beyond what
// every reader of numbers keeps is refused.
func (p *headerParam) text(raw []byte) (string, error) {
	if text, ok := stringValue(raw); ok {
		return text, nil
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	switch {
	case p.typ != "integer" || err != nil || n != math.Trunc(n):
		return string(raw), nil
	case n > maxSafeInteger || n < -maxSafeInteger:
		return "", fmt.Errorf("the argument %s, which is sent in a header, is beyond ±(2^53-1)", strings.Join(p.path, "."))
	}
	return strconv.FormatInt(int64(n), 10), nil
}

const maxSafeInteger = 1<<53 - 1

// equal reports whether a header says what the argument is: integers are
// compared as numbers.
func (p *headerParam) equal(raw []byte, header string) bool {
	text, err := p.text(raw)
	if err != nil {
		return false
	}
	if p.typ != "integer" || raw[0] == '"' || validJSON([]byte(header)) != nil {
		return text == header
	}
	a, errA := strconv.ParseFloat(text, 64)
	b, errB := strconv.ParseFloat(header, 64)
	return errA == nil && errB == nil && a == b && b <= maxSafeInteger && b >= -maxSafeInteger
}

// isToken reports whether s is a token of RFC 9110.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		if !isAlnum(c) && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

func isBaggageValue(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' || c == '"' || c == ',' || c == ';' || c == '\\' {
			return false
		}
	}
	return true
}

// kept is what the exported fields of a decoded value cannot say.
type kept struct {
	falses uint8 // optional booleans that came as false, by field.bit
	list   bool  // content came as an array
}

func (k *kept) keep() *kept { return k }

// A keeper embeds kept.
type keeper interface{ keep() *kept }

// A variant is a type whose members depend on its kind, as the kind tags say.
type variant interface{ variant() string }

func (c *Content) variant() string           { return c.Type }
func (r *CompleteReference) variant() string { return r.Type }

func (r *ResourceContents) variant() string {
	if r.Blob != nil {
		return "blob"
	}
	return "text"
}

func (p *ElicitParams) variant() string {
	if p.Mode == "url" || p.Mode == "" && p.URL != "" {
		return "url"
	}
	return "form"
}

// contentSince says which kinds of content there are, and since when.
var contentSince = map[string]*revision{
	"text":          rev20241105,
	"image":         rev20241105,
	"resource":      rev20241105,
	"audio":         rev20250326,
	"resource_link": rev20250618,
	"tool_use":      rev20251125,
	"tool_result":   rev20251125,
}

// standIn returns the text that is sent in place of a block to a peer whose
// revision does not have its kind.
func (c *Content) standIn() Content {
	if c.Type == "resource_link" {
		return Text(c.Name + ": " + c.URI)
	}
	return Text("[" + strings.TrimSpace(c.Type+" "+c.MIMEType+c.Name) + "]")
}

// MarshalJSON encodes the block as the newest revision has it.
func (c Content) MarshalJSON() ([]byte, error) { return encodeAt(nil, &c, revLatest) }

// UnmarshalJSON decodes a block of any revision.
func (c *Content) UnmarshalJSON(data []byte) error { return unmarshalOwn(data, c, "content") }

// MarshalJSON encodes the contents as the newest revision has them.
func (r ResourceContents) MarshalJSON() ([]byte, error) { return encodeAt(nil, &r, revLatest) }

// UnmarshalJSON decodes contents of any revision.
func (r *ResourceContents) UnmarshalJSON(data []byte) error {
	return unmarshalOwn(data, r, "resource contents")
}

// MarshalJSON encodes the message as the newest revision has it.
func (m SamplingMessage) MarshalJSON() ([]byte, error) { return encodeAt(nil, &m, revLatest) }

// UnmarshalJSON decodes a message of any revision.
func (m *SamplingMessage) UnmarshalJSON(data []byte) error { return unmarshalOwn(data, m, "message") }

// MarshalJSON encodes the result as the newest revision has it.
func (r CreateMessageResult) MarshalJSON() ([]byte, error) { return encodeAt(nil, &r, revLatest) }

// UnmarshalJSON decodes a result of any revision.
func (r *CreateMessageResult) UnmarshalJSON(data []byte) error {
	return unmarshalOwn(data, r, "result")
}

func unmarshalOwn(data []byte, v any, root string) error {
	d := decoder{scanner: scanner{data: bytes.Clone(data)}, rev: revLatest}
	return d.decode(v, root)
}

// A plan is what the codec knows of a Go type: compiled once from the type and
// its struct tags, used for every value.
type plan struct {
	typ  reflect.Type
	kind planKind
	// argKind is kind as encoding/json has it, which knows this package's types
	// by their methods only.
	argKind planKind
	own     bool  // a struct of this package
	elem    *plan // of a pointer, slice, array or map

	// of a struct
	fields   []field
	byName   map[string]int
	members  map[string][]member // by kind; of a type without kinds, under ""
	variants bool                // implements variant
	says     string              // and this member says the kind: "type" or "mode"
	keeps    bool                // embeds kept

	resultType, meta, ttl, scope int // positions in fields, or -1
}

type planKind uint8

const (
	planUnsupported planKind = iota // not JSON: channels, functions, complex numbers
	planBool
	planInt
	planUint
	planFloat
	planString
	planNumber // json.Number
	planSlice
	planArray
	planMap
	planRawMap // map[string]json.RawMessage
	planPointer
	planStruct
	planAny  // an interface without methods
	planRaw  // json.RawMessage
	planID   // ID
	planJSON // has UnmarshalJSON
	planText // has UnmarshalText
)

// A field is a struct field that is a JSON member.
type field struct {
	jsonField
	plan *plan

	// of a type of this package
	key       string // the name in quotes, and a colon
	span      span
	kinds     []kindUse // nil is all
	shape     string    // "object" or "schema", in the revisions of shapeSpan
	shapeSpan span
	oneOrMore bool
	empty     string
	bit       uint8 // of an optional boolean, in kept.falses
}

type kindUse struct {
	kind     string
	required bool
}

// A member is a field as one kind has it.
type member struct {
	*field
	at       int // position in plan.fields
	required bool
}

func (f *field) ofKind(kind string) (has, required bool) {
	if f.kinds == nil {
		return true, !f.omitEmpty && !f.omitZero
	}
	for _, k := range f.kinds {
		if k.kind == kind {
			return true, k.required
		}
	}
	return false, false
}

// in returns the field's value in a struct. With alloc, nil pointers on the
// way to it are filled; otherwise the result may be the zero Value.
func (f *field) in(v reflect.Value, alloc bool) (reflect.Value, error) {
	for i, x := range f.index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				if !alloc {
					return reflect.Value{}, nil
				}
				if !v.CanSet() {
					return v, fmt.Errorf("is in an embedded pointer to the unexported type %s", v.Type().Elem())
				}
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(x)
	}
	return v, nil
}

// scopeOf returns the cacheScope in a struct that has one.
func (p *plan) scopeOf(v reflect.Value) string {
	fv, _ := p.fields[p.scope].in(v, false)
	return fv.String()
}

// membersOf returns the members that a value of the given kind has.
func (p *plan) membersOf(kind string) []member {
	if m, ok := p.members[kind]; ok {
		return m
	}
	return p.members[""]
}

var (
	typeRaw        = reflect.TypeFor[json.RawMessage]()
	typeRawMap     = reflect.TypeFor[map[string]json.RawMessage]()
	typeRawMapPtr  = reflect.TypeFor[*map[string]json.RawMessage]()
	typeID         = reflect.TypeFor[ID]()
	typeContent    = reflect.TypeFor[Content]()
	typeJSONNumber = reflect.TypeFor[json.Number]()

	typeJSONUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	typeTextUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	typeVariant         = reflect.TypeFor[variant]()
	typeKeeper          = reflect.TypeFor[keeper]()
)

var (
	plans  sync.Map // of *plan, by reflect.Type
	planMu sync.Mutex
)

// planOf returns the plan of a type.
func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	planMu.Lock()
	defer planMu.Unlock()
	c := compiler{}
	p := c.plan(t)
	for t, p := range c {
		plans.Store(t, p)
	}
	return p
}

// A compiler holds the plans of one compilation. They refer to each other, so
// they are published together, when all are complete.
type compiler map[reflect.Type]*plan

func (c compiler) plan(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	if p := c[t]; p != nil {
		return p
	}
	p := &plan{typ: t, own: isOwnStruct(t), resultType: -1, meta: -1, ttl: -1, scope: -1}
	c[t] = p
	// As encoding/json has it, methods count where the type has a name, or
	// where a pointer leads to it.
	p.argKind = kindOf(t, t.Name() != "")
	switch p.kind = p.argKind; {
	case p.own:
		p.kind = planStruct
	case t == typeID:
		p.kind = planID
	}
	switch p.kind {
	case planSlice, planArray, planMap:
		p.elem = c.plan(t.Elem())
	case planPointer:
		e := t.Elem()
		if kind := kindOf(e, true); e.Name() == "" && (kind == planJSON || kind == planText) {
			p.elem = &plan{typ: e, kind: kind, argKind: kind}
		} else {
			p.elem = c.plan(e)
		}
	case planStruct:
		c.structPlan(p)
	}
	return p
}

func kindOf(t reflect.Type, methods bool) planKind {
	switch pointer := reflect.PointerTo(t); {
	case t == typeRaw:
		return planRaw
	case methods && pointer.Implements(typeJSONUnmarshaler):
		return planJSON
	case methods && pointer.Implements(typeTextUnmarshaler):
		return planText
	case t == typeJSONNumber:
		return planNumber
	case t.Kind() == reflect.Map && !canBeKey(t.Key()):
		return planUnsupported
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String && t.Elem() == typeRaw && t.ConvertibleTo(typeRawMap):
		return planRawMap
	}
	switch t.Kind() {
	case reflect.Bool:
		return planBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return planInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return planUint
	case reflect.Float32, reflect.Float64:
		return planFloat
	case reflect.String:
		return planString
	case reflect.Slice:
		return planSlice
	case reflect.Array:
		return planArray
	case reflect.Map:
		return planMap
	case reflect.Pointer:
		return planPointer
	case reflect.Struct:
		return planStruct
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return planAny
		}
	}
	return planUnsupported
}

func canBeKey(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return true
	}
	return reflect.PointerTo(t).Implements(typeTextUnmarshaler)
}

// isOwnStruct reports whether t is a struct of this package that is written
// member by member.
func isOwnStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != typeID && t.PkgPath() == typeContent.PkgPath()
}

func (c compiler) structPlan(p *plan) {
	p.byName = map[string]int{}
	for i, f := range jsonFields(p.typ) {
		p.byName[f.name] = i
		p.fields = append(p.fields, field{jsonField: f, plan: c.plan(f.typ)})
	}
	if p.own {
		p.ownPlan()
	}
}

// ownPlan adds what only the structs of this package have.
func (p *plan) ownPlan() {
	p.variants = reflect.PointerTo(p.typ).Implements(typeVariant)
	p.keeps = reflect.PointerTo(p.typ).Implements(typeKeeper)
	kinds := map[string]bool{"": true}
	bit := uint8(1)
	for i := range p.fields {
		f := &p.fields[i]
		f.ownTags()
		if p.keeps && f.plan.kind == planBool && f.omitEmpty {
			f.bit = bit
			bit <<= 1
		}
		for _, k := range f.kinds {
			kinds[k.kind] = true
		}
	}
	position := func(name string) int {
		if i, ok := p.byName[name]; ok {
			return i
		}
		return -1
	}
	p.resultType, p.meta = position("resultType"), position("_meta")
	if p.scope = position("cacheScope"); p.scope >= 0 {
		p.ttl = position("ttlMs")
	}
	for _, name := range []string{"type", "mode"} {
		if p.variants && position(name) >= 0 {
			p.says = name
		}
	}
	p.members = make(map[string][]member, len(kinds))
	for kind := range kinds {
		for i := range p.fields {
			if has, required := p.fields[i].ofKind(kind); has {
				p.members[kind] = append(p.members[kind], member{&p.fields[i], i, required})
			}
		}
	}
}

// ownTags reads the tags that only this package's types have.
func (f *field) ownTags() {
	f.key = string(appendString(nil, f.name)) + ":"
	since, option, _ := strings.Cut(f.tag.Get("mcp"), ",")
	f.span = parseSpan(since)
	switch shape, until, _ := strings.Cut(option, ".."); shape {
	case "oneOrMore":
		f.oneOrMore = true
	case "object", "schema":
		f.shape, f.shapeSpan = shape, span{to: revisionOf(until)}
	}
	for kind := range strings.FieldsSeq(f.tag.Get("kind")) {
		name, required := strings.CutSuffix(kind, "!")
		f.kinds = append(f.kinds, kindUse{name, required})
	}
	f.empty = f.tag.Get("empty")
}

// parseSpan reads the revisions of an mcp tag.
func parseSpan(tag string) span {
	from, to, closed := strings.Cut(tag, "..")
	s := span{from: revisionOf(from), to: revisionOf(to)}
	if s.from == nil && from != "" || closed && s.to == nil {
		panic("mcp: bad revisions in a struct tag: " + tag)
	}
	return s
}

// isOwn reports whether the codec writes values of type t by its own plan:
// types of this package, and pointers, slices and maps of them.
func isOwn(t reflect.Type) bool {
	for {
		switch kind := t.Kind(); {
		case t == typeRawMap:
			return true
		case t.Name() != "":
			return t.PkgPath() == typeContent.PkgPath() && t != typeID &&
				(kind == reflect.Struct || kind == reflect.Map || kind == reflect.Slice)
		case kind != reflect.Pointer && kind != reflect.Slice && kind != reflect.Map:
			return false
		}
		t = t.Elem()
	}
}

// encodeAt appends v as rev has it: members that rev does not define are left
// out. Foreign values are written by encoding/json, and json.RawMessage as it
// is, on one line.
func encodeAt(dst []byte, v any, rev *revision) ([]byte, error) {
	return encodeWith(dst, v, encoder{rev: rev})
}

func encodeWith(dst []byte, v any, e encoder) ([]byte, error) {
	rv := reflect.ValueOf(v)
	if !rv.IsValid() || !isOwn(rv.Type()) {
		return encodeJSON(dst, v)
	}
	if rv.Kind() == reflect.Pointer {
		if rv.IsNil() { // all required members empty
			rv = reflect.New(rv.Type().Elem())
		}
		rv = rv.Elem()
	} else {
		addressable := reflect.New(rv.Type()).Elem()
		addressable.Set(rv)
		rv = addressable
	}
	start := len(dst)
	dst, err := e.value(dst, planOf(rv.Type()), rv)
	if err != nil {
		return dst[:start], err
	}
	return dst, nil
}

// A stamp is what every result of a server carries at 2026-07-28.
type stamp struct {
	serverInfo []byte // encoded Implementation; nil leaves it out
	cacheable  bool   // the method's result has cache hints
	ttlMs      int64
	cacheScope string
}

// encodeResult is encodeAt for the result of a method: v must encode to a JSON
// object, and null is {}. At 2026-07-28 the result gets what st has and v does
// not; a nil st adds nothing.
func encodeResult(dst []byte, v any, rev *revision, st *stamp) ([]byte, error) {
	start := len(dst)
	if !rev.modern {
		st = nil
	}
	e := encoder{rev: rev}
	stamped := v != nil && hasEnvelope(reflect.TypeOf(v))
	if stamped {
		e.st = st
	}
	var err error
	if v == nil {
		dst = append(dst, "{}"...)
	} else {
		dst, err = encodeWith(dst, v, e)
	}
	switch {
	case err != nil:
		return dst[:start], err
	case string(dst[start:]) == "null":
		dst = append(dst[:start], "{}"...)
	}
	switch {
	case dst[start] != '{':
		return dst[:start], errors.New("a result must be a JSON object")
	case st == nil || stamped:
		return dst, nil
	}
	dst, err = stampObject(dst, start, st)
	if err != nil {
		return dst[:start], err
	}
	return dst, nil
}

// hasEnvelope reports whether t is a result type of this package, or a pointer
// to one.
func hasEnvelope(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return isOwnStruct(t) && planOf(t).resultType >= 0
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

// An encoder writes values by their plans.
type encoder struct {
	rev *revision
	st  *stamp // for the outermost struct; nil adds nothing
}

func (e encoder) value(dst []byte, p *plan, v reflect.Value) ([]byte, error) {
	switch p.kind {
	case planBool:
		return strconv.AppendBool(dst, v.Bool()), nil
	case planInt:
		return strconv.AppendInt(dst, v.Int(), 10), nil
	case planFloat:
		return appendFloat(dst, v.Float())
	case planString:
		return appendString(dst, v.String()), nil
	case planRaw:
		return appendRaw(dst, v.Bytes())
	case planID:
		return append(dst, cmp.Or(v.Addr().Interface().(*ID).raw, "null")...), nil
	case planRawMap:
		return appendRawMap(dst, *rawMapAt(v))
	case planPointer:
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		return e.value(dst, p.elem, v.Elem())
	case planSlice:
		if p.elem.typ.Kind() == reflect.Uint8 {
			dst = base64.StdEncoding.AppendEncode(append(dst, '"'), v.Bytes())
			return append(dst, '"'), nil
		}
		return e.slice(dst, p, v)
	case planMap:
		if p.typ.Key().Kind() == reflect.String {
			return e.stringMap(dst, p, v)
		}
	case planStruct:
		if p.own || len(p.fields) == 0 {
			return e.structure(dst, p, v)
		}
	}
	return encodeJSON(dst, v.Interface())
}

func (e encoder) slice(dst []byte, p *plan, v reflect.Value) ([]byte, error) {
	dst = append(dst, '[')
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = e.value(dst, p.elem, v.Index(i)); err != nil {
			return dst, under(err, "["+strconv.Itoa(i)+"]")
		}
	}
	return append(dst, ']'), nil
}

// stringMap writes a map in the order of its keys, so that equal values have
// equal bytes.
func (e encoder) stringMap(dst []byte, p *plan, v reflect.Value) ([]byte, error) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	dst = append(dst, '{')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, k.String()), ':')
		elem := reflect.New(p.elem.typ).Elem()
		elem.Set(v.MapIndex(k))
		var err error
		if dst, err = e.value(dst, p.elem, elem); err != nil {
			return dst, under(err, "["+strconv.Quote(k.String())+"]")
		}
	}
	return append(dst, '}'), nil
}

// rawMapAt returns the map in v, which has planRawMap and can be addressed.
func rawMapAt(v reflect.Value) *map[string]json.RawMessage {
	return v.Addr().Convert(typeRawMapPtr).Interface().(*map[string]json.RawMessage)
}

func appendRawMap(dst []byte, m map[string]json.RawMessage) ([]byte, error) {
	dst = append(dst, '{')
	var err error
	for i, k := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, k), ':')
		if dst, err = appendRaw(dst, m[k]); err != nil {
			return dst, under(err, "["+strconv.Quote(k)+"]")
		}
	}
	return append(dst, '}'), nil
}

func appendFloat(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, fmt.Errorf("%v is no JSON number", f)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, 64), nil
}

// structure writes a struct of this package.
func (e encoder) structure(dst []byte, p *plan, v reflect.Value) ([]byte, error) {
	kind := ""
	if p.variants {
		kind = v.Addr().Interface().(variant).variant()
	}
	if p.typ == typeContent {
		c := v.Addr().Interface().(*Content)
		if since := contentSince[kind]; since == nil || !e.rev.atLeast(since) || c.Raw != nil {
			return e.otherContent(dst, c)
		}
	}
	dst = append(dst, '{')
	start := len(dst)
	for _, m := range p.membersOf(kind) {
		if !m.span.has(e.rev) {
			continue
		}
		end := len(dst)
		if end > start {
			dst = append(dst, ',')
		}
		from := len(dst)
		var err error
		if dst, err = e.member(dst, p, m, v); err != nil {
			return dst, under(err, "."+m.name)
		}
		if len(dst) == from {
			dst = dst[:end]
		}
	}
	return append(dst, '}'), nil
}

// otherContent writes a block that the revision, or this package, does not
// know.
func (e encoder) otherContent(dst []byte, c *Content) ([]byte, error) {
	switch {
	case contentSince[c.Type] != nil && c.Raw == nil:
		text := c.standIn()
		return e.value(dst, planOf(typeContent), reflect.ValueOf(&text).Elem())
	case !hasShape(c.Raw, "object"):
		return dst, fmt.Errorf("content of the unknown type %q needs an object as Raw", c.Type)
	}
	return appendRaw(dst, c.Raw)
}

// member writes one member of the struct v, or nothing.
func (e encoder) member(dst []byte, p *plan, m member, v reflect.Value) ([]byte, error) {
	fv, _ := m.in(v, false)
	if !fv.IsValid() { // of an embedded pointer that is nil
		return dst, nil
	}
	st := e.st
	e.st = nil
	switch m.at {
	case p.ttl: // both hints, or none
		return appendHints(dst, fv.Int(), p.scopeOf(v), st), nil
	case p.scope:
		return dst, nil
	case p.meta:
		if st != nil && st.serverInfo != nil {
			return appendMeta(dst, *rawMapAt(fv), st.serverInfo)
		}
	case p.resultType:
		if st != nil && fv.Len() == 0 && m.empty == "" {
			return append(dst, `"resultType":"complete"`...), nil
		}
	}
	switch {
	case m.required:
	case m.bit != 0 && !fv.Bool() && v.Addr().Interface().(keeper).keep().falses&m.bit != 0:
	case m.omitEmpty && isEmpty(fv), m.omitZero && fv.IsZero():
		return dst, nil
	}
	if m.shape != "" && m.shapeSpan.has(e.rev) && fv.Len() > 0 && !hasShape(fv.Bytes(), m.shape) {
		if m.required || m.shapeSpan.to == nil {
			return dst, errors.New("must be a JSON object")
		}
		return dst, nil
	}
	dst = append(dst, m.key...)
	switch {
	case m.required && m.empty != "" && fv.IsZero():
		return append(dst, m.empty...), nil
	case m.oneOrMore:
		return e.oneOrMore(dst, m, fv, v)
	}
	return e.value(dst, m.plan, fv)
}

// oneOrMore writes content as one block where that is how it came, or how the
// revision has it.
func (e encoder) oneOrMore(dst []byte, m member, fv, v reflect.Value) ([]byte, error) {
	single := fv.Len() == 1
	switch {
	case e.rev.atLeast(rev20251125):
		single = single && !v.Addr().Interface().(keeper).keep().list
	case !single:
		return dst, fmt.Errorf("must be exactly one block at %s", e.rev.version)
	}
	if single {
		return e.value(dst, m.plan.elem, fv.Index(0))
	}
	return e.value(dst, m.plan, fv)
}

// isEmpty is what omitempty asks.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.String:
		return v.Len() == 0
	}
	return v.IsZero()
}

// hasShape reports whether raw can be a JSON object, or for "schema" a JSON
// Schema of type object.
func hasShape(raw []byte, shape string) bool {
	s := scanner{data: raw}
	if s.peek() != '{' {
		return false
	}
	return shape == "object" || string(rawMember(raw, "type")) == `"object"`
}

// rawMember returns the value of the first member with the name in a JSON
// object, and nil if there is none.
func rawMember(object []byte, name string) []byte {
	s := scanner{data: object}
	s.open('{')
	for n := 0; s.more('}', n); n++ {
		if string(s.key()) == name {
			return s.skip()
		}
		s.skip()
	}
	return nil
}

// appendHints writes both cache hints: the author's, or else the stamp's.
func appendHints(dst []byte, ttl int64, scope string, st *stamp) []byte {
	if ttl == 0 && scope == "" {
		if st == nil || !st.cacheable {
			return dst
		}
		ttl, scope = st.ttlMs, st.cacheScope
	}
	dst = strconv.AppendInt(append(dst, `"ttlMs":`...), max(ttl, 0), 10)
	return appendString(append(dst, `,"cacheScope":`...), cmp.Or(scope, "private"))
}

// appendMeta writes the author's _meta with the server's name in it.
func appendMeta(dst []byte, m map[string]json.RawMessage, serverInfo []byte) ([]byte, error) {
	dst = append(dst, `"_meta":`...)
	if _, ok := m[metaServerInfo]; ok {
		return appendRawMap(dst, m)
	}
	dst = append(dst, `{"`+metaServerInfo+`":`...)
	dst = append(dst, serverInfo...)
	if len(m) == 0 {
		return append(dst, '}'), nil
	}
	brace := len(dst)
	dst, err := appendRawMap(dst, m)
	if err == nil {
		dst[brace] = ','
	}
	return dst, err
}

// A pathError says where in a document something is wrong.
type pathError struct {
	path string // such as ".messages[2].role"
	err  error
}

func (e *pathError) Error() string {
	return strings.TrimPrefix(e.path, ".") + " " + e.err.Error()
}

func (e *pathError) Unwrap() error { return e.err }

// under returns err with a step before its path.
func under(err error, step string) error {
	if e, ok := err.(*pathError); ok {
		return &pathError{step + e.path, e.err}
	}
	return &pathError{step, err}
}

// A decoder reads one document into Go values by their plans.
type decoder struct {
	scanner
	rev    *revision
	strict bool // from a peer who must send what the revision demands
	args   bool // by the rules of encoding/json
	nested bool // inside the content of a tool result
}

// decodeAt reads data, an object, into v, a pointer to a value of the types
// above. Names match exactly; what rev does not define is ignored, and a member given
// twice is an error. strict is for params: a required member must be there,
// and null is not a value. Otherwise, for results, null is absent and an
// absent array is empty. No data is {}. Raw values in v alias data.
func decodeAt(data []byte, v any, rev *revision, strict bool) error {
	root := "result"
	if strict {
		root = "params"
	}
	if len(data) == 0 {
		data = []byte("{}")
	}
	d := decoder{scanner: scanner{data: data}, rev: rev, strict: strict}
	return d.decode(v, root)
}

// decodeArguments reads the arguments of a tool call into v, a pointer. It
// takes what encoding/json takes, but for names that are not exactly those of
// v's members, which are ignored, and members given twice, which are an error.
// It takes more where JSON Schema does, integers such as 1.0 and 1e2, and what
// encoding/json writes for a type with its own text in a field with the option
// ",string". No data is {}.
func decodeArguments(data []byte, v any) error {
	if len(data) == 0 {
		data = []byte("{}")
	}
	d := decoder{scanner: scanner{data: data}, args: true}
	return d.decode(v, "arguments")
}

// decodeAny reads a copy of data into v, a pointer to any type.
func decodeAny(data []byte, v any, root string) error {
	d := decoder{scanner: scanner{data: bytes.Clone(data)}, rev: revLatest, args: !isOwn(reflect.TypeOf(v).Elem())}
	return d.decode(v, root)
}

func (d *decoder) decode(v any, root string) error {
	rv := reflect.ValueOf(v).Elem()
	err := d.value(planOf(rv.Type()), rv)
	if err == nil {
		d.end()
	}
	if d.err != nil {
		return fmt.Errorf("%s: %w", root, d.err)
	}
	if err != nil {
		return under(err, root)
	}
	return nil
}

func mustBe(what string) error { return errors.New("must be " + what) }

// value reads one value. After a syntax error, which d.err holds, it may
// return any error or none.
func (d *decoder) value(p *plan, v reflect.Value) error {
	kind := p.kind
	if d.args {
		kind = p.argKind
	}
	c := d.peek()
	if c == 'n' {
		return d.null(kind, v)
	}
	switch kind {
	case planBool:
		if c != 't' && c != 'f' {
			return mustBe("true or false")
		}
		v.SetBool(len(d.skip()) == len("true"))
	case planInt, planUint, planFloat:
		if !isNumber(c) {
			return mustBe("a number")
		}
		return d.setNumber(kind, v)
	case planString:
		if c != '"' {
			return mustBe("a string")
		}
		v.SetString(d.text())
	case planNumber:
		return d.setJSONNumber(v)
	case planSlice, planArray:
		return d.array(p, v)
	case planMap:
		return d.goMap(p, v)
	case planRawMap:
		return d.rawMap(v)
	case planPointer:
		return d.pointer(p, v)
	case planStruct:
		return d.structure(p, v)
	case planAny:
		x, err := d.any()
		if err == nil {
			v.Set(reflect.ValueOf(x))
		}
		return err
	case planRaw:
		d.setRaw(v, d.skip())
	case planID:
		id, err := parseID(d.skip())
		if err != nil {
			return mustBe("a string or an integer")
		}
		*v.Addr().Interface().(*ID) = id
	case planJSON:
		return d.unmarshal(v)
	case planText:
		return d.unmarshalText(v)
	default:
		return fmt.Errorf("cannot be decoded into %s", p.typ)
	}
	return nil
}

// null reads null: a value for json.RawMessage and those that decode
// themselves, and otherwise, where it is allowed, nothing.
func (d *decoder) null(kind planKind, v reflect.Value) error {
	switch {
	case kind == planRaw:
		d.setRaw(v, d.skip())
		return nil
	case kind == planJSON:
		return d.unmarshal(v)
	case d.strict:
		return errors.New("must not be null")
	}
	d.skip()
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		if v.CanSet() {
			v.SetZero()
		}
	}
	return nil
}

func isNumber(c byte) bool { return c == '-' || '0' <= c && c <= '9' }

// unmarshal hands the next value to the UnmarshalJSON of v.
func (d *decoder) unmarshal(v reflect.Value) error {
	raw := d.skip()
	switch {
	case d.err != nil:
		return d.err
	case !v.CanInterface():
		return errors.New("cannot be set")
	}
	if v.Type() == reflect.TypeFor[big.Int]() && isNumber(raw[0]) {
		raw = plainInteger(raw, maxBigDigits)
	}
	return v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(raw)
}

// The most digits of an integer with an exponent.
const (
	maxDigits    = 20 // of 64 bits
	maxBigDigits = 1000
)

func (d *decoder) unmarshalText(v reflect.Value) error {
	if d.peek() != '"' || !v.CanInterface() {
		return mustBe("a string")
	}
	return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(d.text()))
}

func (d *decoder) pointer(p *plan, v reflect.Value) error {
	if v.IsNil() {
		if !v.CanSet() {
			return errors.New("cannot be set")
		}
		v.Set(reflect.New(p.elem.typ))
	}
	return d.value(p.elem, v.Elem())
}

// setRaw keeps raw JSON: as it lies in our own types, copied for those of
// others.
func (d *decoder) setRaw(v reflect.Value, raw []byte) {
	if d.args {
		raw = bytes.Clone(raw)
	}
	v.SetBytes(raw)
}

// text reads a string.
func (d *decoder) text() string {
	raw, escaped := d.str()
	if escaped {
		return unescapeString(raw)
	}
	switch string(raw) { // no copies of what is in most messages
	case "text":
		return "text"
	case "user":
		return "user"
	case "assistant":
		return "assistant"
	case "complete":
		return "complete"
	}
	return string(raw)
}

// An integer may be written as 1.0 or 1e3, which some peers do and JSON Schema
// allows.
func (d *decoder) setNumber(kind planKind, v reflect.Value) error {
	raw := d.number()
	switch kind {
	case planFloat:
		f, err := strconv.ParseFloat(string(raw), v.Type().Bits())
		if err != nil {
			return mustBe("a number within the range of " + v.Type().String())
		}
		v.SetFloat(f)
	case planInt:
		n, err := strconv.ParseInt(string(plainInteger(raw, maxDigits)), 10, 64)
		if err != nil || v.OverflowInt(n) {
			return mustBe("an integer within the range of " + v.Type().String())
		}
		v.SetInt(n)
	default:
		plain := string(plainInteger(raw, maxDigits))
		if plain == "-0" {
			plain = "0"
		}
		n, err := strconv.ParseUint(plain, 10, 64)
		if err != nil || v.OverflowUint(n) {
			return mustBe("an integer within the range of " + v.Type().String())
		}
		v.SetUint(n)
	}
	return nil
}

// setJSONNumber keeps the digits of a number, or of one in a string.
func (d *decoder) setJSONNumber(v reflect.Value) error {
	switch c := d.peek(); {
	case isNumber(c):
		v.SetString(string(d.number()))
		return nil
	case c != '"':
		return mustBe("a number")
	}
	text := d.text()
	s := scanner{data: []byte(text)}
	if text == "" || !isNumber(text[0]) || s.number() == nil || s.pos != len(text) {
		return mustBe("a number")
	}
	v.SetString(text)
	return nil
}

func (d *decoder) array(p *plan, v reflect.Value) error {
	slice := v.Kind() == reflect.Slice
	if slice && d.peek() == '"' && p.elem.typ.Kind() == reflect.Uint8 {
		return d.base64(v)
	}
	if d.peek() != '[' {
		return mustBe("an array")
	}
	d.open('[')
	i := 0
	for n := 0; d.more(']', n); n++ {
		// Too many for a Go array, or a hole that a sloppy peer left.
		if !slice && i >= v.Len() || p.elem.own && !d.args && !d.strict && d.peek() == 'n' {
			d.skip()
			continue
		}
		if slice {
			if i >= v.Cap() {
				v.Grow(1)
			}
			v.SetLen(i + 1)
			v.Index(i).SetZero()
		}
		if err := d.value(p.elem, v.Index(i)); err != nil {
			return under(err, "["+strconv.Itoa(n)+"]")
		}
		i++
	}
	switch {
	case !slice:
		for ; i < v.Len(); i++ {
			v.Index(i).SetZero()
		}
	case i == 0:
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	default:
		v.SetLen(i)
	}
	return nil
}

func (d *decoder) base64(v reflect.Value) error {
	raw, escaped := d.str()
	if escaped {
		raw = unescape(raw)
	}
	data := make([]byte, base64.StdEncoding.DecodedLen(len(raw)))
	n, err := base64.StdEncoding.Decode(data, raw)
	if err != nil {
		return mustBe("base64")
	}
	v.SetBytes(data[:n])
	return nil
}

func (d *decoder) rawMap(v reflect.Value) error {
	if d.peek() != '{' {
		return mustBe("an object")
	}
	m := *rawMapAt(v)
	if m == nil {
		m = make(map[string]json.RawMessage)
	}
	d.open('{')
	had := len(m) > 0
	for n := 0; d.more('}', n); n++ {
		name := string(d.key())
		if _, twice := m[name]; twice && !had {
			return under(errTwice, "["+strconv.Quote(name)+"]")
		}
		raw := d.skip()
		if d.args {
			raw = bytes.Clone(raw)
		}
		m[name] = raw
	}
	*rawMapAt(v) = m
	return nil
}

var errTwice = errors.New("is given twice")

func (d *decoder) goMap(p *plan, v reflect.Value) error {
	if d.peek() != '{' {
		return mustBe("an object")
	}
	t := v.Type()
	if v.IsNil() {
		if !v.CanSet() {
			return errors.New("cannot be set")
		}
		v.Set(reflect.MakeMap(t))
	}
	var seen map[string]bool // where the map itself cannot tell: "1" and "01" are two names
	if v.Len() > 0 || kindOf(t.Key(), true) != planString {
		seen = make(map[string]bool)
	}
	d.open('{')
	for n := 0; d.more('}', n); n++ {
		name := string(d.key())
		step := func() string { return "[" + strconv.Quote(name) + "]" }
		key := reflect.New(t.Key()).Elem()
		if err := setKey(key, name); err != nil {
			return under(err, step())
		}
		if seen[name] || seen == nil && v.MapIndex(key).IsValid() {
			return under(errTwice, step())
		}
		if seen != nil {
			seen[name] = true
		}
		elem := reflect.New(t.Elem()).Elem()
		if err := d.value(p.elem, elem); err != nil {
			return under(err, step())
		}
		if d.err == nil {
			v.SetMapIndex(key, elem)
		}
	}
	return nil
}

// setKey makes a map key of a member's name.
func setKey(key reflect.Value, name string) error {
	switch k := key.Addr().Interface().(type) {
	case json.Unmarshaler:
		if _, ok := k.(encoding.TextUnmarshaler); ok {
			return k.UnmarshalJSON(appendString(nil, name))
		}
	case encoding.TextUnmarshaler:
		return k.UnmarshalText([]byte(name))
	}
	switch key.Kind() {
	case reflect.String:
		key.SetString(name)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(name, 10, 64)
		if err != nil || key.OverflowInt(n) {
			return mustBe("an integer within the range of " + key.Type().String())
		}
		key.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		n, err := strconv.ParseUint(name, 10, 64)
		if err != nil || key.OverflowUint(n) {
			return mustBe("an integer within the range of " + key.Type().String())
		}
		key.SetUint(n)
	}
	return nil
}

// any reads a value of any kind into the Go type that encoding/json gives it.
func (d *decoder) any() (any, error) {
	switch c := d.peek(); {
	case c == '"':
		return d.text(), nil
	case c == 't' || c == 'f':
		return len(d.skip()) == len("true"), nil
	case c == 'n':
		d.skip()
		return nil, nil
	case c == '[':
		list := []any{}
		d.open('[')
		for n := 0; d.more(']', n); n++ {
			x, err := d.any()
			if err != nil {
				return nil, under(err, "["+strconv.Itoa(n)+"]")
			}
			list = append(list, x)
		}
		return list, nil
	case c == '{':
		object := map[string]any{}
		d.open('{')
		for n := 0; d.more('}', n); n++ {
			name := string(d.key())
			x, err := d.any()
			if _, twice := object[name]; twice && err == nil {
				err = errTwice
			}
			if err != nil {
				return nil, under(err, "["+strconv.Quote(name)+"]")
			}
			object[name] = x
		}
		return object, nil
	case !isNumber(c):
		d.skip() // fails
		return nil, d.err
	}
	f, err := strconv.ParseFloat(string(d.number()), 64)
	if err != nil {
		return nil, mustBe("a number within the range of float64")
	}
	return f, nil
}

func (d *decoder) structure(p *plan, v reflect.Value) error {
	if d.peek() != '{' {
		return mustBe("an object")
	}
	kind := ""
	if p.says != "" && !d.args {
		kind = d.kindAhead(p)
		known := kind != "" && p.members[kind] != nil
		if d.nested && (kind == "tool_use" || kind == "tool_result") {
			known = false // or looking ahead at every level would cost the square of the depth
		}
		switch {
		case known || kind == "" && d.strict:
		case p.typ == typeContent: // of a kind that is not known, here at least
			c := v.Addr().Interface().(*Content)
			c.Type, c.Raw = kind, d.skip()
			return nil
		case d.strict || p.says == "mode":
			return under(fmt.Errorf("cannot be %q", kind), "."+p.says)
		}
	}
	if kind == "tool_result" {
		d.nested = true
		defer func() { d.nested = false }()
	}
	var few [64]bool
	seen := few[:]
	if len(p.fields) > len(few) {
		seen = make([]bool, len(p.fields))
	}
	d.open('{')
	for n := 0; d.more('}', n); n++ {
		i, ok := p.byName[string(d.key())]
		if !ok || !d.args && !p.fields[i].read(d.rev, p, kind) {
			d.skip()
			continue
		}
		f := &p.fields[i]
		if seen[i] {
			return under(errTwice, "."+f.name)
		}
		seen[i] = true
		if err := d.member(f, v); err != nil {
			return under(err, "."+f.name)
		}
	}
	if d.args || d.err != nil {
		return nil
	}
	if p.variants && p.says == "" {
		kind = v.Addr().Interface().(variant).variant()
	}
	return d.complete(p.membersOf(kind), v, seen)
}

// complete looks after the required members that were absent or null: an error
// where the peer must give them, else an array or map that is empty.
func (d *decoder) complete(members []member, v reflect.Value, seen []bool) error {
	for _, m := range members {
		if !m.required || seen[m.at] && d.strict || !m.span.has(d.rev) {
			continue
		}
		if d.strict {
			return under(errors.New("is missing"), "."+m.name)
		}
		switch fv, _ := m.in(v, true); {
		case m.plan.kind == planSlice && fv.IsNil():
			fv.Set(reflect.MakeSlice(m.typ, 0, 0))
		case m.plan.kind == planMap && fv.IsNil():
			fv.Set(reflect.MakeMap(m.typ))
		case m.plan.kind == planPointer && m.empty != "" && fv.IsNil():
			fv.Set(reflect.New(m.typ.Elem()))
		}
	}
	return nil
}

// kindAhead returns the kind of the object that comes next, "" if it has none.
func (d *decoder) kindAhead(p *plan) string {
	ahead := decoder{scanner: d.scanner}
	if p.fields[p.byName[p.says]].span.has(d.rev) {
		ahead.open('{')
	}
	for n := 0; ahead.depth > d.depth && ahead.more('}', n); n++ {
		if string(ahead.key()) == p.says && ahead.peek() == '"' {
			return ahead.text()
		}
		ahead.skip()
	}
	if p.says == "mode" {
		return "form" // 2025-11-25 client/elicitation § Elicitation Requests
	}
	return ""
}

// read reports whether the field is read at the revision, and where a member
// says the kind, in that kind.
func (f *field) read(rev *revision, p *plan, kind string) bool {
	if !f.span.has(rev) {
		return false
	}
	has, _ := f.ofKind(kind)
	return has || p.says == ""
}

// member reads one member of the struct v.
func (d *decoder) member(f *field, v reflect.Value) error {
	fv, err := f.in(v, true)
	if err != nil {
		return err
	}
	c := d.peek()
	switch {
	case d.args && f.quoted:
		return d.quoted(f, fv)
	case d.args:
		return d.value(f.plan, fv)
	case c == 'n' && f.plan.kind == planPointer && !f.omitZero && f.empty == "":
		d.skip() // a required member that may be null
		fv.SetZero()
		return nil
	case f.shape != "" && c != '{' && f.shapeSpan.has(d.rev):
		if d.strict {
			return mustBe("an object")
		}
		if c == 'n' {
			d.skip()
			return nil
		}
	case f.oneOrMore && c == '{':
		fv.Set(reflect.MakeSlice(f.typ, 1, 1))
		return d.value(f.plan.elem, fv.Index(0))
	}
	if err := d.value(f.plan, fv); err != nil {
		return err
	}
	if f.oneOrMore {
		v.Addr().Interface().(keeper).keep().list = true
	}
	if f.bit != 0 && !fv.Bool() && c == 'f' {
		v.Addr().Interface().(keeper).keep().falses |= f.bit
	}
	return nil
}

// quoted reads a member with the option ",string" as encoding/json does.
func (d *decoder) quoted(f *field, fv reflect.Value) error {
	raw := d.skip()
	if d.err != nil {
		return d.err
	}
	box := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "V", Type: f.typ, Tag: `json:"v,string"`}}))
	if err := json.Unmarshal(slices.Concat([]byte(`{"v":`), raw, []byte("}")), box.Interface()); err != nil {
		return mustBe("a string that holds a value of " + f.typ.String())
	}
	fv.Set(box.Elem().Field(0))
	return nil
}
