package scaffold

import (
	"cmp"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

var (
	versionPattern = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
	kindPattern    = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)
	modulePattern  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]*(/[A-Za-z0-9][A-Za-z0-9._~-]*)*$`)
	notLabel       = regexp.MustCompile(`[^a-z0-9]+`)
	consonantY     = regexp.MustCompile(`[^aeiou]y$`)
	releasePattern = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-(alpha|beta|rc)\.[0-9]+)?$`)
)

// reserved lists, by language, the kinds that would collide with other names in a project.
var reserved = map[string][]string{
	"go": {"Loud", "Plain", "Style"},
	"python": {
		"Annotated", "Any", "Child", "Column", "Composite", "LabelSelector", "Literal", "Mapper", "MapRequest",
		"MapResponse", "Maximum", "Minimum", "MinLength", "None", "Object", "ObjectMeta", "Optional", "SyncRequest",
		"SyncResponse",
	},
	"typescript": {
		"Array", "KubernetesObject", "LabelSelector", "MapRequest", "MapResponse", "Object", "Promise", "Record",
		"SyncRequest", "SyncResponse",
	},
}

// camelCase turns a name into a kind, which has to start with a letter: web-shop becomes WebShop.
func camelCase(name string) string {
	var kind strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		if word != "" {
			kind.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	if text := kind.String(); text[0] >= 'A' {
		return text
	}
	return "X" + kind.String()
}

// asLabel turns a text into the closest DNS label: "Web Shop" becomes web-shop.
func asLabel(text string) string {
	label := strings.Trim(notLabel.ReplaceAllString(strings.ToLower(text), "-"), "-")
	label = strings.TrimRight(label[:min(len(label), validation.DNS1123LabelMaxLength)], "-")
	return cmp.Or(label, "web-shop")
}

// plural returns the resource of a kind, as Kubernetes would name it.
func plural(kind string) string {
	name := strings.ToLower(kind)
	for _, ending := range []string{"s", "x", "z", "ch", "sh"} {
		if strings.HasSuffix(name, ending) {
			return name + "es"
		}
	}
	if consonantY.MatchString(name) {
		return strings.TrimSuffix(name, "y") + "ies"
	}
	return name + "s"
}
