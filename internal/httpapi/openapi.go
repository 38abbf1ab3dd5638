package httpapi

import (
	"embed"
	"fmt"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/goccy/go-yaml"
)

// openapiFiles describe the calls of this package by area. They are written by
// hand, to be read by people too; openapi_test.go holds them to the code.
//
//go:embed openapi/*.yaml
var openapiFiles embed.FS

// openapi is the whole document as JSON, made when it is first asked for.
var openapi = sync.OnceValue(func() []byte {
	doc, err := readOpenAPI()
	var text []byte
	if err == nil {
		text, err = json.Marshal(doc, json.Deterministic(true))
	}
	if err != nil {
		panic("httpapi: the embedded description: " + err.Error())
	}
	return text
})

func readOpenAPI() (map[string]any, error) {
	doc := map[string]any{}
	list, err := openapiFiles.ReadDir("openapi")
	if err != nil {
		return nil, err
	}
	for _, file := range list {
		text, err := openapiFiles.ReadFile("openapi/" + file.Name())
		var part map[string]any
		if err == nil {
			err = yaml.Unmarshal(text, &part)
		}
		if err == nil {
			err = merge(doc, part, "")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
	}
	components, _ := doc["components"].(map[string]any)
	for name, r := range table(components["responses"]) {
		if name != "Unsupported" { // which is JSON always
			packed(r)
		}
	}
	for _, item := range table(doc["paths"]) {
		for _, operation := range table(item) {
			if o, ok := operation.(map[string]any); ok {
				packed(o["requestBody"])
				for _, r := range table(o["responses"]) {
					packed(r)
				}
			}
		}
	}
	return doc, nil
}

// merge adds the members of a document to another one. What stands in both
// must be maps.
func merge(into, from map[string]any, at string) error {
	for name, value := range from {
		old, there := into[name]
		if !there {
			into[name] = value
			continue
		}
		a, ok := old.(map[string]any)
		b, too := value.(map[string]any)
		if !ok || !too {
			return fmt.Errorf("%s/%s stands in another file already", at, name)
		}
		if err := merge(a, b, at+"/"+name); err != nil {
			return err
		}
	}
	return nil
}

// packed says of a body that can be JSON that it can be MessagePack too.
func packed(body any) {
	content := table(table(body)["content"])
	if is, ok := content[mediaJSON]; ok {
		content[mediaMsgpack] = is
	}
}

// table is a map of the document, nil if there is none.
func table(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}
