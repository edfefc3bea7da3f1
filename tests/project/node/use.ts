// What a host written in TypeScript may say with the declarations, and what it must not.
import type { ErrorCodes, ExecutionResult, Methods, Notifications, Requests } from './tamis';

declare function call<Name extends keyof Methods>(name: Name, params: Methods[Name]['params']): Promise<Methods[Name]['result']>;

export async function run(text: string): Promise<string> {
  const list = await call('tool/list', { view: 'full', filter: { tags: ['text'] } });
  const ids: string[] = list.tools.map((tool) => tool.toolId);
  const done = await call('tool/executeText', { text, mode: 'sequential', onError: 'stop' });
  const failed: ExecutionResult[] = done.results.filter((result) => result.status !== 'success');
  await call('tool/execute', { toolId: ids[0], args: { text }, timeoutMs: 1000 });
  return `${failed.length} ${done.results[0]?.sandbox?.backend ?? 'none'} ${done.observation}`;
}

export function answer(question: Requests['tool/requestApproval']['params']): Requests['tool/requestApproval']['result'] {
  return { outcome: 'selected', optionId: question.options[0].optionId };
}

export const overloaded: ErrorCodes['overloaded'] = 1201;
export const piece = (told: Notifications['tool/output']['params']): string => told.text;

// @ts-expect-error a method that there is not
call('no/such', {});
// @ts-expect-error text is missing
call('tool/parse', {});
// @ts-expect-error a mode that there is not
call('tool/executeText', { text: '', mode: 'both' });
