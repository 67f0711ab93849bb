// Converts between JSON and the messages.
#pragma once
#include <openssl/sha.h>

#include <nlohmann/json.hpp>
#include <string>

#include "hookloop/composite/v1/composite.grpc.pb.h"

namespace composite = hookloop::composite::v1;
namespace hook = hookloop::hook::v1;
using nlohmann::json; // keeps integers up to 64 bits as integers

inline json Decode(const hook::ObservedObject& object) { return json::parse(object.body()); }

// Find returns the observed object of a kind and name, or nullptr.
template <typename Groups>
const hook::ObservedObject* Find(const Groups& groups, const std::string& kind, const std::string& name) {
  for (const auto& group : groups)
    for (const auto& object : group.objects())
      if (group.kind() == kind && object.name() == name) return &object;
  return nullptr;
}

// AddChild adds a desired object, created after another one. dump throws if a text is not UTF-8.
inline void AddChild(composite::SyncResponse& response, const json& object, const json* after = nullptr) {
  auto* child = response.add_children();
  child->set_encoding(hook::ENCODING_JSON);
  child->set_body(object.dump());
  if (!after) return;
  auto* dependency = child->add_depends_on();
  dependency->set_api_version(after->at("apiVersion"));
  dependency->set_kind(after->at("kind"));
  dependency->set_name(after->at("metadata").at("name"));
}

// Digest is a hash of the pages. It is in the Pods' template, so new pages replace the Pods.
inline std::string Digest(const json& html) {
  std::string pages;
  for (const auto& [file, page] : html.items()) pages += file + '\0' + page.get<std::string>() + '\0';
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(pages.data()), pages.size(), digest);
  std::string digits;
  for (unsigned char byte : digest) {
    digits += "0123456789abcdef"[byte >> 4];
    digits += "0123456789abcdef"[byte & 15];
  }
  return digits;
}
