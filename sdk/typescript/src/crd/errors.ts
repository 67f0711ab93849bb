/** Errors that name the place in the author's file. */
import { relative } from "node:path";
import ts from "typescript";

/**
 * Is thrown for a type that a CRD cannot express. The message names file, line, interface and
 * field.
 */
export class UnsupportedType extends Error {
  override name = "UnsupportedType";
}

/** A field, or an interface, for messages. */
export interface Place {
  readonly node: ts.Node | undefined;
  /** "ShopSpec.copies" */
  readonly name: string;
}

/** Makes an error about a place. */
export function unsupported({ node, name }: Place, problem: string): UnsupportedType {
  return new UnsupportedType(`${node ? `${positionOf(node)}: ` : ""}${name}: ${problem}`);
}

/** Returns "src/api.ts:12:3" for a node. */
export function positionOf(node: ts.Node): string {
  const file = node.getSourceFile();
  return positionIn(file, node.getStart(file));
}

/** Returns where a character is in a file. */
export function positionIn(file: ts.SourceFile, start: number): string {
  const { line, character } = file.getLineAndCharacterOfPosition(start);
  return `${relative(process.cwd(), file.fileName)}:${line + 1}:${character + 1}`;
}
